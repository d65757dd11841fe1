"""Find entries of the knowledge base that nothing in the database supports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from agentforge.schema import Evaluation, Evidence, Lesson, Outcome, UsageError
from agentforge.store import Store

from .entries import log_gain, log_speedup_of


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
    below = cache(partial(_below, store))
    for outcome in store.outcomes(claims=False):
        if why := _outcome(outcome, _evaluation(store, outcome.evaluation), below):
            yield Doubt("outcome", outcome.id, outcome.strategy, why)
    for lesson in (lesson for found in store.lessons(claims=False).values() for lesson in found):
        if why := _lesson(lesson, _evaluation(store, lesson.evaluation)):
            yield Doubt("lesson", lesson.id, lesson.strategy, why)


def _evaluation(store: Store, identifier: str) -> Evaluation | str:
    """A stored evaluation, or why it supports nothing."""
    try:
        found = store.get_evaluation(identifier)
    except UsageError:
        return "its evaluation does not exist"
    return "its evaluation was edited" if store.edited_evaluation(identifier) else found


def _below(store: Store, run: str, definition: str, strategy: str) -> tuple[Evaluation, ...] | None:
    """What a run measured of a strategy's attempts; None if the run is no longer stored."""
    attempts = store.attempts(run)
    if not attempts:
        return None
    own = [a for a in attempts if a.bottleneck == definition and a.plan and a.plan.strategy == strategy]
    solutions = {a.solution for a in own}
    found = [_evaluation(store, a.evaluation) for a in own if a.evaluation]
    # an attempt that was measured again has several
    found += [e for e in store.run_evaluations(run, definition) if e.solution in solutions]
    return tuple(e for e in found if isinstance(e, Evaluation))


def _gained(outcome: Outcome, evaluation: Evaluation, before: Evaluation) -> bool:
    """Whether an outcome's gain is over `before`: by eager, or by the best baselines, as older ones are."""
    own, base = outcome.log_speedup, log_speedup_of(before)
    gains = log_gain(evaluation, before), None if own is None or base is None else own - base
    kept = outcome.log_gain
    return any(kept is not None and g is not None and math.isclose(g, kept, abs_tol=1e-6) for g in gains)


def _outcome(
    outcome: Outcome,
    evaluation: Evaluation | str,
    below: Callable[[str, str, str], tuple[Evaluation, ...] | None],
) -> str:
    if isinstance(evaluation, str):
        return evaluation
    said = (outcome.solution, outcome.status, outcome.evidence)
    if said != (evaluation.solution, evaluation.status, evaluation.evidence):
        return "its evaluation says something else"
    performance = evaluation.performance
    if performance is None or outcome.log_speedup is None:
        return "its evaluation was not timed" if outcome.log_speedup is not None else ""
    measured = performance.speedup_over_best.point if performance.baseline_s else 0.0
    if not math.isclose(math.exp(min(outcome.log_speedup, 700.0)), measured, rel_tol=1e-6):
        return f"its evaluation measured {measured:.3g}x"
    sol, verified = performance.sol_s, outcome.evidence is Evidence.VERIFIED  # else the referee doubts it too
    if verified and sol is not None and performance.latency_s < sol:
        return f"it beats the speed of light ({performance.latency_s:.3g} s against {sol:.3g} s)"
    if outcome.run is not None and outcome.after and outcome.log_gain is not None:
        found = below(outcome.run, evaluation.definition, outcome.after)
        if found is not None and not any(_gained(outcome, evaluation, before) for before in found):
            return "no measurement of what it was built on gives its gain"
    return ""


def _lesson(lesson: Lesson, evaluation: Evaluation | str) -> str:
    if isinstance(evaluation, str):
        return evaluation
    if not evaluation.verified or evaluation.performance is None:
        return "its evaluation is not verified"
    measured = evaluation.performance.speedup_over_best.point
    same = math.isclose(lesson.speedup, measured, rel_tol=1e-6)
    return "" if same else f"its evaluation measured {measured:.3g}x"
