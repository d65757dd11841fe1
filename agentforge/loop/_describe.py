"""Small renderings for events and attempts."""

from __future__ import annotations

import math
import time
from statistics import fmean
from typing import TypedDict

from agentforge.llm import CallFailed, NoUsableAnswer
from agentforge.schema import (
    Attempt,
    AttemptReflected,
    CannotCode,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Plan,
    Promotion,
    Usage,
)

_UNUSABLE = "nothing usable was answered"


def sentence(error: BaseException) -> str:
    """Type and first line of an exception; the type is left out if the message is for a person."""
    text = (str(error).strip().splitlines() or [""])[0][:500]
    name = type(error).__name__
    if text and isinstance(error, CannotCode | CallFailed):
        return text
    return f"{name}: {text}" if text else name


def error_text(agent: str, error: Exception) -> str:
    """Error of an attempt whose planner or coder raised.

    It begins with `agent` (`CODER_FAILED`, `PLANNER_FAILED`), so that the question is asked again, unless
    another answer to it would not do either.
    """
    return f"{_UNUSABLE if isinstance(error, NoUsableAnswer) else agent}: {sentence(error)}"


def add_usage(before: Usage, *more: Usage, started: float) -> Usage:
    """Sum of usages; its seconds are those of `before` and the wall time since `started` (monotonic).

    A proposer's own account of its seconds is part of that wall time. The price of the sum is unknown
    if one of the prices is.
    """
    usages = (before, *more)
    dollars = [u.dollars for u in usages]
    return Usage(
        seconds=before.seconds + time.monotonic() - started,
        tokens_in=sum(u.tokens_in for u in usages),
        tokens_out=sum(u.tokens_out for u in usages),
        tokens_cached=sum(u.tokens_cached for u in usages),
        dollars=None if None in dollars else sum(d for d in dollars if d is not None),
    )


def paid(error: Exception) -> Usage:
    """What an agent's calls of language models cost before they failed."""
    return error.usage if isinstance(error, CallFailed) else Usage()


def tuning_said(attempt: Attempt) -> str:
    """What tuning an attempt came to, in one line."""
    first, best = attempt.trials[0], next(t for t in reversed(attempt.trials) if t.won)
    values = ", ".join(f"{name} = {value}" for name, value in best.parameters.items())
    before, after = (math.exp(fmean(t.log_speedups)) for t in (first, best))
    points = f"attempt {attempt.number}: {len(attempt.trials)} points tried"
    return f"{points}, {before:.2f}x before, {after:.2f}x with {values}"


class Numbers(TypedDict):
    """Fields that events of a measured attempt have."""

    level: Level
    status: EvaluationStatus
    evidence: Evidence
    reasons: tuple[str, ...]
    seconds: float
    latency_s: float | None
    speedup: dict[str, Interval]


def numbers(evaluation: Evaluation) -> Numbers:
    """What events tell of an evaluation."""
    performance = evaluation.performance
    return {
        "level": evaluation.level,
        "status": evaluation.status,
        "evidence": evaluation.evidence,
        "reasons": evaluation.reasons[:3],
        "seconds": round(evaluation.seconds, 3),
        "latency_s": performance.latency_s if performance else None,
        "speedup": dict(performance.speedup) if performance else {},
    }


class Which(TypedDict):
    """Fields that all events of an attempt have."""

    attempt: str
    number: int
    bottleneck: str


def which(attempt: Attempt) -> Which:
    """The attempt, as events name it."""
    return {"attempt": attempt.id, "number": attempt.number, "bottleneck": attempt.bottleneck}


def promotion(attempt: Attempt, evaluation: Evaluation, before_s: float, after_s: float) -> Promotion:
    """The event of a promotion.

    Args:
        before_s, after_s: eager seconds of the bottleneck in one forward, and those with the solution.
    """
    return Promotion(
        **which(attempt),
        **numbers(evaluation),
        solution=attempt.solution,
        time_s=after_s,
        time_before_s=before_s,
    )


def reflected(
    attempt: Attempt, plan: Plan, evaluation: Evaluation, speedup: float | None
) -> AttemptReflected:
    """The event of what was expected of an attempt, and of its measured speedup over the best baseline."""
    return AttemptReflected(
        **which(attempt),
        strategy=plan.strategy,
        expected_speedup=plan.expected_speedup,
        measured_speedup=speedup,
        verified=evaluation.verified,
    )
