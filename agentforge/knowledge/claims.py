"""Judge claims on this machine: the referee's verdict takes the claim's place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentforge.devices import DeviceSpec
from agentforge.referee import EvaluationRequest
from agentforge.schema import (
    Bottleneck,
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
from .entries import log_speedup_of, outcome_of, strategy_without_card
from .transfer import Bundle, claim_of, known_bottlenecks, profiles_of

_MOST_LOG = 700.0
"""Largest log speedup that is a number as a speedup; a claim may say more."""
_MOST_NAME = 80
"""Most characters of a strategy's identifier that an agent makes up."""
_BARE: Mapping[str, Any] = {"author": "bundle", "parameters": {}, "description": ""}
"""What a judged solution says beside its code; what its file says is foreign, and stays out."""


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
    """Their language cannot be built here, their reference does not run here, or their numbers are
    impossible."""
    unknown: int
    """Claims about operators that no run here has profiled."""
    without_solution: int
    """Claims whose solution the bundle lacks."""


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

    A solution that is verified here, and faster than the best baseline, becomes an outcome of this database:
    one for each strategy and context, because only the bundle says that the code is an instance of the
    strategy. For the same reason a solution that fails, is slower or is not verified does not count. A
    strategy that nothing here describes stays claimed until a run here tries it, so a bundle's words reach no
    language model. What was built on another strategy gets no credit, because what came before it is not
    measured here. Parameters count if the strategy's card has them. Whatever the verdict, what the bundle
    claims of the solution on this architecture is removed, and not judged again.

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
    waiting = _waiting(base, store, bundle, device)
    shown = [outcome for outcome in waiting if outcome.solution in bundle.solutions]
    for outcome in shown:
        if len(judged) == most:
            break
        solution = bundle.solutions[outcome.solution]
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
            context = _context(bottleneck, device)
            evaluation = evaluate(request)
        except (UsageError, TargetError, MachineError) as error:
            unjudged.append(UnjudgedClaim(outcome.strategy, claimed, str(error)))
            continue
        judged.append(JudgedClaim(outcome.strategy, claimed, evaluation))
        if evaluation.status is EvaluationStatus.HARNESS_ERROR:
            continue
        bare = solution.model_copy(update=_BARE)
        store.save_definition(bottleneck.definition)
        store.save_solution(bare)
        store.save_evaluation(evaluation)
        _accept(base, store, outcome, bare, evaluation, context)
        about = (o for o in bundle.outcomes if o.solution == solution.hash)
        same = (o for o in about if o.context.architecture == device.architecture)
        store.remove_outcomes(claim_of(o).id for o in same)
    return ClaimVerdicts(tuple(judged), tuple(unjudged), unknown, len(waiting) - len(shown))


def _context(bottleneck: Bottleneck, device: DeviceSpec) -> Context:
    """The context of a bottleneck that may be a bundle's."""
    try:
        return context_for(bottleneck, device)
    except (ArithmeticError, ValueError) as error:
        raise UsageError(
            f"the bundle describes {bottleneck.definition.name} with impossible numbers: export it again"
        ) from error


def _accept(
    base: KnowledgeBase,
    store: Store,
    claim: Outcome,
    solution: Solution,
    evaluation: Evaluation,
    context: Context,
) -> None:
    """Keep the verdict as an outcome of this database, if it is the strategy's first gain in the context that
    no run found."""
    if not evaluation.verified or (log_speedup_of(evaluation) or 0.0) <= 0:
        return
    local = (o for o in store.outcomes(claim.strategy, claims=False) if o.run is None)
    if any(o.context == context for o in local):
        return
    card, values = base.cards.get(claim.strategy), dict[str, tuple[int | float | str | bool, ...]]()
    if isinstance(card, Strategy):
        values = card.parameters
    else:  # nothing changes if the database has it already
        described = strategy_without_card(claim.strategy, context, solution)
        store.save_strategy(described.model_copy(update={"claimed": True}))
    known = {name: value for name, value in claim.parameters.items() if value in values.get(name, ())}
    outcome = outcome_of(claim.strategy, context, solution, evaluation, known)
    store.record_outcomes([outcome.model_copy(update={"after": claim.after})])


def _waiting(base: KnowledgeBase, store: Store, bundle: Bundle, device: DeviceSpec) -> list[Outcome]:
    """Claims that were verified elsewhere and not judged here, each solution once, the fastest first."""
    outcomes, here = store.outcomes(), device.architecture
    waiting = {o.id for o in outcomes if o.claimed}
    done = {o.solution for o in outcomes if not o.claimed and o.context.architecture == here}
    among = {o.solution for o in bundle.outcomes}
    done |= {solution for solution, where in store.judged_solutions(among) if where == here}
    promising = [
        o
        for o in bundle.outcomes
        if o.status is EvaluationStatus.PASSED
        and o.evidence is Evidence.VERIFIED
        and o.log_speedup is not None
        and o.solution not in done
        and (o.strategy in base.cards or _is_name(o.strategy))
        and claim_of(o).id in waiting
    ]
    fastest: dict[str, Outcome] = {}
    for outcome in sorted(promising, key=lambda o: -(o.log_speedup or 0.0)):
        fastest.setdefault(outcome.solution, outcome)
    return [*fastest.values()]


def _is_name(text: str) -> bool:
    """Whether it is an identifier as agents make them up: words between single hyphens."""
    return len(text) <= _MOST_NAME and all(word.isalnum() for word in text.split("-"))
