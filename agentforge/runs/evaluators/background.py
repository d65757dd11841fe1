"""Start slow set-up in a background thread while the target is loaded, or while the agents plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest, OnStage, Subject
from agentforge.schema import Definition, Evaluation, HarnessError, Level, Solution, Workload

if TYPE_CHECKING:
    from agentforge.referee.workers.process import Forkserver

    from .early_referee import EarlyReferee

T = TypeVar("T")


class Background(Generic[T]):
    """A call in a daemon thread; a process that ends does not wait for it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._outcome: Future[T] = Future()
        Thread(target=self._run, args=(call,), daemon=True).start()

    def result(self) -> T:
        """What the call returned, or raised, once it ended."""
        return self._outcome.result()

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self._outcome.set_result(call())
        except BaseException as error:
            self._outcome.set_exception(error)


class LazyReferee:
    """The referee, opened in the background; the first question waits for that.

    Args:
        settings: how it works.
        device: what the measurements are taken on.
        cache: folder for built objects and compiler caches.
    """

    def __init__(self, settings: RefereeSettings, *, device: DeviceSpec, cache: Path) -> None:
        self._settings, self._device, self._cache = settings.model_copy(), device, cache
        self._eager_first = False
        self._judged_in_full = set[str]()
        self._lock = Lock()
        self._closed = False
        self._referee: EarlyReferee | None = None
        self._servers: tuple[Forkserver, ...] = ()
        self._opening: Background[EarlyReferee] | None = None
        self._starting: Background[None] | None = None

    def open(self, judged_in_full: Iterable[str] | None = None, *, ahead: bool = False) -> None:
        """Begin to open it, unless that was begun.

        Args:
            judged_in_full: if not None, level `quick` measures a region against eager alone until one of its
                solutions had a full verdict: one that is faster gets that next, and one that is slower needs
                no other baseline. These definitions, by their hash, had one in an earlier session.
            ahead: also start the processes from which workers are forked. They import torch and warm its
                compiler up, which takes seconds: nothing may be timed before `ready` returns.
        """
        with self._lock:
            if self._opening is not None:
                return
            self._eager_first = judged_in_full is not None and self._settings.quick_compile
            self._judged_in_full = set(judged_in_full or ())
            opening = self._opening = Background(lambda: self._open(ahead))
            self._starting = Background(lambda: self._start(opening))

    def ready(self) -> None:
        """Wait until the processes that were begun ahead wait for work.

        Raises nothing: the first question raises what keeps one from starting.
        """
        with suppress(Exception):
            if self._starting is not None:
                self._starting.result()

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        self.ready()
        referee, definition = self._opened(), request.definition
        if self._eager_first:
            known = definition.whole_model or definition.hash in self._judged_in_full
            referee.settings.quick_compile = known  # it is read in each evaluation
        if request.level is Level.FULL:
            self._judged_in_full.add(definition.hash)
        return referee.evaluate(request, progress=progress)

    def build(self, solution: Solution) -> None:
        """See `Referee.build`."""
        self._opened().build(solution)

    def machine_code(self, solution: Solution) -> str:
        """See `Referee.machine_code`."""
        return self._opened().machine_code(solution)

    def machine_code_hash(self, solution: Solution) -> str:
        """See `Referee.machine_code_hash`."""
        return self._opened().machine_code_hash(solution)

    def subject(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        programs: Sequence[Path] = (),
    ) -> AbstractContextManager[Subject]:
        """See `Referee.subject`."""
        return self._opened().subject(definition, workloads, solution, programs=programs)

    def close(self) -> None:
        """End the referee's workers; it is not opened any more."""
        with self._lock:
            self._closed = True
            if self._referee is not None:
                self._referee.close()

    def _opened(self) -> EarlyReferee:
        self.open()
        assert self._opening is not None
        return self._opening.result()

    def _open(self, ahead: bool) -> EarlyReferee:
        from .early_referee import EarlyReferee  # it needs torch, and the first plan does not

        with self._lock:
            if self._closed:
                raise HarnessError("the referee was closed before it was opened")
            referee = EarlyReferee(self._settings, device=self._device, cache=self._cache)
            referee.__enter__()
            self._referee, self._servers = referee, referee.servers() if ahead else ()
            return referee

    def _start(self, opening: Background[EarlyReferee]) -> None:
        opening.result()
        for server in self._servers:
            server.ready()
