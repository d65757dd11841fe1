"""What a run waits for later, begun early: it goes on in a thread of its own while agents think."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec
from agentforge.harness import Subject, warm_compiler_cache
from agentforge.schema import Definition, Evaluation, HarnessError, Level, Solution, Workload

if TYPE_CHECKING:
    from agentforge.harness import Referee

T = TypeVar("T")


class Meanwhile(Generic[T]):
    """A call that is under way; a process that ends does not wait for it."""

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


class ReadyReferee:
    """The referee, opened once its baselines are compiled; who asks first waits for that.

    So agents plan and write while torch.compile works, and nothing is timed beside it.

    Args:
        settings: how it works.
        device: what the measurements are taken on.
        cache: folder for built objects and compiler caches.
        definitions: whose baselines are compiled side by side before anything is judged.
    """

    def __init__(
        self, settings: RefereeSettings, *, device: DeviceSpec, cache: Path, definitions: Sequence[Definition]
    ) -> None:
        self._settings, self._device, self._cache = settings, device, cache
        self._definitions = definitions
        self._lock = Lock()
        self._closed = False
        self._referee: Referee | None = None
        self._opening = Meanwhile(self._open)

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level = Level.QUICK,
        sol_s: float | None = None,
    ) -> Evaluation:
        """See `Referee.evaluate`."""
        return self._opening.result().evaluate(definition, workloads, solution, level=level, sol_s=sol_s)

    def build(self, solution: Solution) -> None:
        """See `Referee.build`."""
        self._opening.result().build(solution)

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
        warm_compiler_cache(self._definitions, self._settings, self._cache)
        from agentforge.harness import Referee  # it needs torch, and the first plan does not

        with self._lock:
            if self._closed:
                raise HarnessError("the referee was closed before it was opened")
            referee = Referee(self._settings, device=self._device, cache=self._cache)
            self._referee = referee.__enter__()
            return self._referee
