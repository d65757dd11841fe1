"""The real referee with another clock: what a run decides by its speeds repeats on a busy machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentforge.harness import Referee
from agentforge.schema import (
    Definition,
    Evaluation,
    Evidence,
    Interval,
    Level,
    Performance,
    Solution,
    Workload,
)


class SteadyReferee:
    """Builds, checks and counts kernels as `quick` does; a solution that passes gets a speed by its sources.

    Args:
        referee: the real one.
        speed: speedup over eager of a solution.
    """

    def __init__(self, referee: Referee, speed: Callable[[Solution], float]) -> None:
        self._referee = referee
        self._speed = speed

    def evaluate(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        level: Level = Level.QUICK,
        sol_s: float | None = None,
    ) -> Evaluation:
        """The real verdict at level `quick`, under `level`'s name; `verified` where it passes at `full`."""
        found = self._referee.evaluate(definition, workloads, solution, sol_s=sol_s)
        if found.performance is None:
            return found.model_copy(update={"level": level})
        speed = self._speed(solution)
        performance = Performance(
            latency_s=1e-3 / speed,
            baseline_s={"eager": 1e-3},
            speedup={"eager": Interval(point=speed, low=speed * 0.99, high=speed * 1.01)},
            control=Interval(point=1.0, low=0.99, high=1.01),
            blocks=found.performance.blocks,
            processes=found.performance.processes,
            sol_s=sol_s,
        )
        verified = level is Level.FULL
        changes = {
            "level": level,
            "performance": performance,
            "evidence": Evidence.VERIFIED if verified else Evidence.UNVERIFIED,
            "reasons": () if verified else found.reasons,
        }
        return found.model_copy(update=changes)
