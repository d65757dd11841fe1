"""Entries of the knowledge base, made from evaluations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentforge.schema import JUDGED, Context, Evaluation, Outcome, Solution, Strategy, content_hash
from agentforge.store import evaluation_id

from .generator import generator_hash

MOST_WORDS = 600
"""Most characters of a lesson."""


def outcome_of(
    strategy_id: str,
    context: Context,
    solution: Solution,
    evaluation: Evaluation,
    parameters: Mapping[str, int | float | str | bool],
    run: str | None = None,
    *,
    parent: tuple[str, Evaluation] | None = None,
) -> Outcome:
    """What an evaluation says about a strategy; arguments as for `KnowledgeBase.record`."""
    identifier = evaluation.copy_of or evaluation_id(evaluation)  # as the run that judged it records it
    return Outcome(
        id=content_hash([strategy_id, identifier], length=24),
        strategy=strategy_id,
        context=context,
        solution=solution.hash,
        evaluation=identifier,
        run=run,
        status=evaluation.status,
        evidence=evaluation.evidence,
        log_speedup=log_speedup_of(evaluation),
        **_built_on(parent, strategy_id, evaluation),
        generator=generator_hash() if solution.author == "playbook" else "",
        parameters=dict(parameters),
        time=evaluation.timestamp,
    )


def log_speedup_of(evaluation: Evaluation) -> float | None:
    """ln(best baseline time / solution time); None unless it was timed against a baseline."""
    performance = evaluation.performance
    if performance is None or not performance.baseline_s:
        return None
    point = performance.speedup_over_best.point
    return math.log(point) if 0 < point < math.inf else None


def strategy_without_card(strategy_id: str, context: Context, solution: Solution) -> Strategy:
    """A strategy that no card describes, as one of its solutions shows it."""
    return Strategy(
        id=strategy_id,
        title=strategy_id.replace("-", " "),
        summary=solution.description or "Proposed in a run; no card describes it.",
        op_types=(context.op_type,),
        languages=(solution.spec.language,),
        devices=("cuda",) if context.architecture.startswith("sm_") else ("cpu",),
    )


def lesson_text(said: str) -> str:
    """A lesson as it is kept: in one line, at most 600 characters."""
    return " ".join(said.split())[:MOST_WORDS]


def _built_on(
    parent: tuple[str, Evaluation] | None, strategy_id: str, evaluation: Evaluation
) -> dict[str, Any]:
    """What an outcome says of the attempt that it was built on."""
    if parent is None:
        return {}
    strategy, before = parent
    found = before.classification
    symptoms = tuple(reason.metric for reason in found.reasons) if found is not None else ()
    if strategy == strategy_id or not before.passed or log_speedup_of(before) is None:
        return {"symptoms": symptoms}
    return {"symptoms": symptoms, "after": strategy, "log_gain": log_gain(evaluation, before)}


def log_gain(evaluation: Evaluation, before: Evaluation) -> float | None:
    """ln(time before / time after), by eager, which both were measured against. None unless both were timed,
    and both alone or both inside their model."""
    own, base = (e.speedup.get("eager") for e in (evaluation, before))
    inside = [JUDGED in e.environment.notes for e in (evaluation, before)]
    if own is None or base is None or inside[0] != inside[1]:
        return None
    gain = own.point / base.point if base.point > 0 else 0.0
    return math.log(gain) if 0 < gain < math.inf else None
