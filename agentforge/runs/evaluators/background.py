"""Start slow set-up in a background thread while the agents plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest, OnStage, Subject
from agentforge.schema import Definition, Evaluation, HarnessError, Level, Solution, Workload

if TYPE_CHECKING:
    from agentforge.referee import Referee

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
        judged_in_full: if not None, level `quick` measures a region against eager alone until one of its
            solutions had a full verdict: one that is faster gets that next, and one that is slower needs no
            other baseline. These definitions, by their hash, had one in an earlier session.
    """

    def __init__(
        self,
        settings: RefereeSettings,
        *,
        device: DeviceSpec,
        cache: Path,
        judged_in_full: Iterable[str] | None = None,
    ) -> None:
        self._settings, self._device, self._cache = settings.model_copy(), device, cache
        self._eager_first = judged_in_full is not None and settings.quick_compile
        self._judged_in_full = set(judged_in_full or ())
        self._lock = Lock()
        self._closed = False
        self._referee: Referee | None = None
        self._opening = Background(self._open)

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        referee, definition = self._opening.result(), request.definition
        if self._eager_first:
            known = definition.whole_model or definition.hash in self._judged_in_full
            referee.settings.quick_compile = known  # it is read in each evaluation
        if request.level is Level.FULL:
            self._judged_in_full.add(definition.hash)
        return referee.evaluate(request, progress=progress)

    def build(self, solution: Solution) -> None:
        """See `Referee.build`."""
        self._opening.result().build(solution)

    def machine_code(self, solution: Solution) -> str:
        """See `Referee.machine_code`."""
        return self._opening.result().machine_code(solution)

    def machine_code_hash(self, solution: Solution) -> str:
        """See `Referee.machine_code_hash`."""
        return self._opening.result().machine_code_hash(solution)

    def subject(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        programs: Sequence[Path] = (),
    ) -> AbstractContextManager[Subject]:
        """See `Referee.subject`."""
        return self._opening.result().subject(definition, workloads, solution, programs=programs)

    def close(self) -> None:
        """End the referee's workers; it is not opened any more."""
        with self._lock:
            self._closed = True
            if self._referee is not None:
                self._referee.close()

    def _open(self) -> Referee:
        from agentforge.referee import Referee  # it needs torch, and the first plan does not

        with self._lock:
            if self._closed:
                raise HarnessError("the referee was closed before it was opened")
            referee = Referee(self._settings, device=self._device, cache=self._cache)
            self._referee = referee.__enter__()
            return self._referee
