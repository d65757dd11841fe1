"""Judge claims on this machine: the referee's verdict takes the claim's place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest
from agentforge.schema import (
    Context,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    MachineError,
    Outcome,
    Solution,
    Strategy,
    TargetError,
    UsageError,
)
from agentforge.store import Store

from .base import KnowledgeBase
from .context import context_for
from .entries import outcome_of, strategy_without_card
from .transfer import Bundle, claim_of, known_bottlenecks, profiles_of

_MOST_LOG = 700.0
"""Largest log speedup that is a number as a speedup; a claim may say more."""
_MOST_NAME = 80
"""Most characters of a strategy's identifier that an agent makes up."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and the verdict of this machine."""

    strategy: str
    claimed_speedup: float
    evaluation: Evaluation


@dataclass(frozen=True)
class UnjudgedClaim:
    """A claim that cannot be judged on this machine; it stays a claim."""

    strategy: str
    claimed_speedup: float
    why: str


@dataclass(frozen=True)
class ClaimVerdicts:
    """What became of the claims that wait for a verdict."""

    judged: tuple[JudgedClaim, ...]
    unjudged: tuple[UnjudgedClaim, ...]
    """Their language cannot be built here, or their reference does not run here."""
    unknown: int
    """Claims about operators that no run here has profiled."""


def judge_claims(
    base: KnowledgeBase,
    store: Store,
    bundle: Bundle,
    most: int,
    *,
    evaluate: Callable[[EvaluationRequest], Evaluation],
    device: DeviceSpec,
    trust_references: bool = False,
) -> ClaimVerdicts:
    """Judge the most promising claims of an imported bundle: verified elsewhere, the highest speedup first.

    A solution that passes becomes an outcome of this database, faster or slower. A strategy that nothing here
    describes stays claimed until a run here tries it, so a bundle's words reach no language model. What was
    built on another strategy gets no credit, because what came before it is not measured here. Parameters
    count if the strategy's card has them. If a solution fails, nothing counts against the strategy, because
    only the bundle says that it is an instance of it. In both cases, what the bundle claims of the solution
    on this architecture is removed, and not judged again.

    The referee gets the speed of light from this database's profile of the operator on this device, if there
    is one; never from the bundle.

    Args:
        base: receives the outcomes.
        store: has the claims.
        bundle: as imported, with solutions.
        most: how many claims to judge; those that cannot be judged here do not count.
        evaluate: asks the referee.
        device: of the referee.
        trust_references: judge also operators that no run of this database has profiled. Their references
            come from the bundle, run without a sandbox, and decide what counts as slow.
    """
    profiles, here = profiles_of(store), (device.name, device.architecture)
    profiled = known_bottlenecks(p for p in profiles if (p.device, p.architecture) == here)
    trusted = bundle.bottlenecks if trust_references else {}
    known = {**trusted, **known_bottlenecks(profiles), **profiled}
    judged, unjudged, unknown = list[JudgedClaim](), list[UnjudgedClaim](), 0
    for outcome, solution in _waiting(base, store, bundle, device):
        if len(judged) == most:
            break
        bottleneck, own = known.get(solution.definition), profiled.get(solution.definition)
        if bottleneck is None:
            unknown += 1
            continue
        request = EvaluationRequest(
            bottleneck.definition,
            bottleneck.workloads,
            solution,
            Level.FULL,
            sol_s=own.sol_per_call_s if own is not None else None,
        )
        claimed = math.exp(min(outcome.log_speedup or 0.0, _MOST_LOG))
        try:
            evaluation = evaluate(request)
        except (UsageError, TargetError, MachineError) as error:
            unjudged.append(UnjudgedClaim(outcome.strategy, claimed, str(error)))
            continue
        judged.append(JudgedClaim(outcome.strategy, claimed, evaluation))
        if evaluation.status is EvaluationStatus.HARNESS_ERROR:
            continue
        store.save_definition(bottleneck.definition)
        store.save_solution(solution)
        store.save_evaluation(evaluation)
        if evaluation.passed:
            _accept(base, store, outcome, solution, evaluation, context_for(bottleneck, device))
        about = (o for o in bundle.outcomes if o.solution == solution.hash)
        same = (o for o in about if o.context.architecture == device.architecture)
        store.remove_outcomes(claim_of(o).id for o in same)
    return ClaimVerdicts(tuple(judged), tuple(unjudged), unknown)


def _accept(
    base: KnowledgeBase,
    store: Store,
    claim: Outcome,
    solution: Solution,
    evaluation: Evaluation,
    context: Context,
) -> None:
    """Keep the verdict on a solution that passed as an outcome of this database."""
    card, values = base.cards.get(claim.strategy), dict[str, tuple[int | float | str | bool, ...]]()
    if isinstance(card, Strategy):
        values = card.parameters
    else:  # nothing changes if the database has it already
        described = strategy_without_card(claim.strategy, context, solution)
        store.save_strategy(described.model_copy(update={"claimed": True}))
    known = {name: value for name, value in claim.parameters.items() if value in values.get(name, ())}
    outcome = outcome_of(claim.strategy, context, solution, evaluation, known)
    store.record_outcomes([outcome.model_copy(update={"after": claim.after})])


def _waiting(
    base: KnowledgeBase, store: Store, bundle: Bundle, device: DeviceSpec
) -> list[tuple[Outcome, Solution]]:
    """Claims that were verified elsewhere and not judged here, each solution once, the fastest first."""
    outcomes, here = store.outcomes(), device.architecture
    waiting = {o.id for o in outcomes if o.claimed}
    done = {o.solution for o in outcomes if not o.claimed and o.context.architecture == here}
    done |= {solution for solution, where in store.judged_solutions(bundle.solutions) if where == here}
    promising = [
        o
        for o in bundle.outcomes
        if o.status is EvaluationStatus.PASSED
        and o.evidence is Evidence.VERIFIED
        and o.log_speedup is not None
        and o.solution in bundle.solutions
        and o.solution not in done
        and (o.strategy in base.cards or _is_name(o.strategy))
        and claim_of(o).id in waiting
    ]
    fastest: dict[str, Outcome] = {}
    for outcome in sorted(promising, key=lambda o: -(o.log_speedup or 0.0)):
        fastest.setdefault(outcome.solution, outcome)
    return [(outcome, bundle.solutions[solution]) for solution, outcome in fastest.items()]


def _is_name(text: str) -> bool:
    """Whether it is an identifier as agents make them up: words between single hyphens."""
    return len(text) <= _MOST_NAME and all(word.isalnum() for word in text.split("-"))
