"""Totals of a run's calls: by role and model, and by attempt."""

from __future__ import annotations

from collections.abc import Iterable

from agentforge.schema import FrozenModel, LLMCall


class CallTotal(FrozenModel):
    """Calls of one role to one model."""

    role: str
    model: str
    calls: int = 0
    failed: int = 0
    """Of `calls`, including those that a kill cut off."""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    dollars: float | None = 0.0
    """None if a price is unknown."""
    seconds: float = 0.0


def totals(calls: Iterable[LLMCall]) -> list[CallTotal]:
    """Sums by role and model, in the order of the first call."""
    found: dict[tuple[str, str], CallTotal] = {}
    for call in calls:
        before = found.get((call.role, call.model)) or CallTotal(role=call.role, model=call.model)
        unknown = before.dollars is None or call.dollars is None
        found[call.role, call.model] = CallTotal(
            role=call.role,
            model=call.model,
            calls=before.calls + 1,
            failed=before.failed + (call.status != "answered"),
            tokens_in=before.tokens_in + call.tokens_in,
            tokens_cached=before.tokens_cached + call.tokens_cached,
            tokens_out=before.tokens_out + call.tokens_out,
            dollars=None if unknown else (before.dollars or 0.0) + (call.dollars or 0.0),
            seconds=before.seconds + call.seconds,
        )
    return list(found.values())


def coder_dollars(calls: Iterable[LLMCall]) -> dict[str, float | None]:
    """What ended calls of coders cost, by attempt; None if a price is unknown."""
    found: dict[str, float | None] = {}
    for call in calls:
        if call.role == "coder" and call.status != "begun":
            before = found.get(call.attempt, 0.0)
            unknown = before is None or call.dollars is None
            found[call.attempt] = None if unknown else (before or 0.0) + (call.dollars or 0.0)
    return found
