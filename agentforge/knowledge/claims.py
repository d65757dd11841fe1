"""Judge claims on this machine: the referee's verdict takes the claim's place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest
from agentforge.schema import (
    Bottleneck,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    Outcome,
    Solution,
)
from agentforge.store import Store

from .base import KnowledgeBase
from .context import context_for
from .transfer import Bundle, claim_of

_MOST_LOG = 700.0
"""Largest log speedup that is a number as a speedup; a claim may say more."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and the verdict of this machine."""

    strategy: str
    claimed_speedup: float
    evaluation: Evaluation


def judge_claims(
    base: KnowledgeBase,
    store: Store,
    bundle: Bundle,
    most: int,
    *,
    evaluate: Callable[[EvaluationRequest], Evaluation],
    device: DeviceSpec,
    trust_references: bool = False,
) -> tuple[JudgedClaim, ...]:
    """Judge the most promising claims of an imported bundle: verified elsewhere, the highest speedup first.

    A solution that passes becomes an outcome of this database, faster or slower. If it fails, nothing counts
    against the strategy, because only the bundle says that the solution is an instance of it. In both cases,
    what the bundle claims of the solution is removed, and not judged again.

    Args:
        base: receives the outcomes.
        store: has the claims.
        bundle: as imported, with solutions.
        most: how many claims to judge.
        evaluate: asks the referee.
        device: of the referee.
        trust_references: judge also operators that no run of this database has profiled. Their references
            come from the bundle, run without a sandbox, and decide what counts as slow.
    """
    judged: list[JudgedClaim] = []
    for outcome, solution, bottleneck in _judgeable(store, bundle, trust_references):
        if len(judged) == most:
            break
        request = EvaluationRequest(bottleneck.definition, bottleneck.workloads, solution, Level.FULL)
        evaluation = evaluate(request)
        claimed = math.exp(min(outcome.log_speedup or 0.0, _MOST_LOG))
        judged.append(JudgedClaim(outcome.strategy, claimed, evaluation))
        if evaluation.status is EvaluationStatus.HARNESS_ERROR:
            continue
        store.save_definition(bottleneck.definition)
        store.save_solution(solution)
        store.save_evaluation(evaluation)
        if evaluation.passed:
            context = context_for(bottleneck, device)
            base.record(outcome.strategy, context, solution, evaluation, outcome.parameters)
        same = (o for o in bundle.outcomes if _what(o) == _what(outcome))
        store.remove_outcomes(claim_of(o).id for o in same)
    return tuple(judged)


def _judgeable(
    store: Store, bundle: Bundle, trust_references: bool
) -> Iterator[tuple[Outcome, Solution, Bottleneck]]:
    known = dict(bundle.bottlenecks) if trust_references else {}
    for run in reversed(store.list_runs()):
        profile = store.get_profile(run.id)
        known.update({b.definition.hash: b for b in profile.bottlenecks} if profile is not None else {})
    outcomes = store.outcomes()
    mine, waiting = {_what(o) for o in outcomes if not o.claimed}, {o.id for o in outcomes if o.claimed}
    promising = [
        o
        for o in bundle.outcomes
        if o.status is EvaluationStatus.PASSED
        and o.evidence is Evidence.VERIFIED
        and o.log_speedup is not None
        and o.solution in bundle.solutions
        and claim_of(o).id in waiting
    ]
    for outcome in sorted(promising, key=lambda o: -(o.log_speedup or 0.0)):
        solution = bundle.solutions[outcome.solution]
        bottleneck = known.get(solution.definition)
        if bottleneck is not None and _what(outcome) not in mine:
            mine.add(_what(outcome))
            yield outcome, solution, bottleneck


def _what(outcome: Outcome) -> tuple[str, str]:
    """What a verdict decides: whether a solution is good, for a strategy."""
    return outcome.strategy, outcome.solution
