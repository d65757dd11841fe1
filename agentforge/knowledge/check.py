"""Find entries of the knowledge base that nothing in the database supports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from agentforge.schema import Evaluation, Lesson, Outcome, UsageError
from agentforge.store import Store


@dataclass(frozen=True)
class Doubt:
    """An entry of this database whose evaluation does not support it."""

    kind: str
    """`outcome` or `lesson`."""
    id: str
    strategy: str
    why: str


def doubtful(store: Store) -> tuple[Doubt, ...]:
    """Outcomes and lessons that are not claims and that no stored evaluation supports."""
    return tuple(_doubts(store))


def remove(store: Store, doubts: tuple[Doubt, ...]) -> None:
    """Forget these entries."""
    store.remove_outcomes(doubt.id for doubt in doubts if doubt.kind == "outcome")
    store.remove_lessons(doubt.id for doubt in doubts if doubt.kind == "lesson")


def _doubts(store: Store) -> Iterator[Doubt]:
    for outcome in store.outcomes():
        if not outcome.claimed and (why := _outcome(outcome, _evaluation(store, outcome.evaluation))):
            yield Doubt("outcome", outcome.id, outcome.strategy, why)
    for lesson in (lesson for found in store.lessons().values() for lesson in found):
        if not lesson.claimed and (why := _lesson(lesson, _evaluation(store, lesson.evaluation))):
            yield Doubt("lesson", lesson.id, lesson.strategy, why)


def _evaluation(store: Store, identifier: str) -> Evaluation | None:
    try:
        return store.get_evaluation(identifier)
    except UsageError:
        return None


def _outcome(outcome: Outcome, evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "its evaluation does not exist"
    said = (outcome.solution, outcome.status, outcome.evidence)
    if said != (evaluation.solution, evaluation.status, evaluation.evidence):
        return "its evaluation says something else"
    performance = evaluation.performance
    if performance is None or outcome.log_speedup is None:
        return "its evaluation was not timed" if outcome.log_speedup is not None else ""
    measured = performance.speedup_over_best.point if performance.baseline_s else 0.0
    if not math.isclose(math.exp(min(outcome.log_speedup, 700.0)), measured, rel_tol=1e-6):
        return f"its evaluation measured {measured:.3g}x"
    if performance.sol_s is not None and performance.latency_s < performance.sol_s:
        return (
            f"it beats the speed of light ({performance.latency_s:.3g} s against {performance.sol_s:.3g} s)"
        )
    return ""


def _lesson(lesson: Lesson, evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "its evaluation does not exist"
    if not evaluation.verified or evaluation.performance is None:
        return "its evaluation is not verified"
    measured = evaluation.performance.speedup_over_best.point
    same = math.isclose(lesson.speedup, measured, rel_tol=1e-6)
    return "" if same else f"its evaluation measured {measured:.3g}x"
