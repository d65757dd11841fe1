"""What the cards that agents were shown led to: shown, cited, gained.

The counts come from the attempts in the store, which a resumed run keeps under their identifiers. So nothing
is counted twice. Only language models are shown cards.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import cache
from statistics import fmean

from agentforge.schema import Attempt, Evaluation, Evidence, FrozenModel
from agentforge.store import Store

from .entries import log_gain


class CardUse(FrozenModel):
    """One card in the attempts of this database."""

    served: int = 0
    """Attempts whose agents were shown it."""
    cited: int = 0
    """Of these, attempts whose plan names it."""
    verified: int = 0
    """Attempts that were shown it and are verified, faster or slower."""
    gain: float | None = None
    """Geometric mean of what they gained: over the nearest attempt above that passed, else over the best
    baseline. None if none is verified."""
    gain_if_cited: float | None = None
    """The same of those that cited it."""


def card_uses(store: Store) -> dict[str, CardUse]:
    """How often each card was shown and cited, and what the attempts gained, by identifier."""
    planned = [(a, a.plan.strategy) for a in store.attempts_with_cards() if a.plan is not None]
    verified = {
        (strategy, o.evaluation): o.log_speedup
        for strategy in {strategy for _, strategy in planned}
        for o in store.outcomes(strategy, claims=False)
        if o.evidence is Evidence.VERIFIED
    }

    @cache
    def attempts(run: str) -> dict[str, Attempt]:
        return {attempt.id: attempt for attempt in store.attempts(run)}

    @cache
    def measured(identifier: str) -> Evaluation | None:
        evaluation = store.get_evaluation(identifier)
        return evaluation if evaluation.speedup else None

    def original(attempt: Attempt) -> str:
        """The evaluation that its outcome names: the one that its own is a copy of, or that."""
        own = attempt.evaluation or ""
        return (own and store.get_evaluation(own).copy_of) or own

    def gained(attempt: Attempt, own: float | None) -> float | None:
        above = attempt.parent
        while own is not None and above is not None and (node := attempts(attempt.run).get(above)):
            before, above = measured(node.evaluation) if node.evaluation else None, node.parent
            if before is not None:
                return log_gain(store.get_evaluation(attempt.evaluation or ""), before)
        return own

    served: dict[str, list[float | None]] = defaultdict(list)
    cited: dict[str, list[float | None]] = defaultdict(list)
    proven = Counter[str]()
    for attempt, strategy in planned:
        own = verified.get((strategy, original(attempt)))
        gain = gained(attempt, own)
        proven.update(attempt.served if own is not None else ())
        for found, cards in ((served, attempt.served), (cited, attempt.cited)):
            for card in cards:
                found[card].append(gain)
    return {
        card: CardUse(
            served=len(gains),
            cited=len(cited[card]),
            verified=proven[card],
            gain=_mean(gains),
            gain_if_cited=_mean(cited[card]),
        )
        for card, gains in sorted(served.items())
    }


def _mean(logs: list[float | None]) -> float | None:
    known = [log for log in logs if log is not None]
    return math.exp(fmean(known)) if known else None
