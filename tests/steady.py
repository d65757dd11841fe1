"""The real referee with another clock: what a run decides by its speeds repeats on a busy machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentforge.referee import EvaluationRequest, OnStage, Referee
from agentforge.schema import (
    Evaluation,
    Evidence,
    Interval,
    Level,
    Performance,
    Solution,
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

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """The real verdict at level `quick`, under `level`'s name; `verified` if it passes at `full`."""
        level = request.level
        found = self._referee.evaluate(replace(request, level=Level.QUICK), progress=progress)
        if found.performance is None:
            return found.model_copy(update={"level": level})
        speed = self._speed(request.solution)
        performance = Performance(
            latency_s=1e-3 / speed,
            baseline_s={"eager": 1e-3},
            speedup={"eager": Interval(point=speed, low=speed * 0.99, high=speed * 1.01)},
            control=Interval(point=1.0, low=0.99, high=1.01),
            blocks=found.performance.blocks,
            processes=found.performance.processes,
            sol_s=request.sol_s,
            workload_s=found.performance.workload_s,
            workload_speedup=found.performance.workload_speedup,
        )
        verified = level is Level.FULL
        changes = {
            "level": level,
            "performance": performance,
            "evidence": Evidence.VERIFIED if verified else Evidence.UNVERIFIED,
            "reasons": () if verified else found.reasons,
            "codes": () if verified else found.codes,
        }
        return found.model_copy(update=changes)
