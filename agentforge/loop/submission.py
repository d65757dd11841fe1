"""A finished proposal goes the way of every attempt: evaluated, judged, recorded, promoted."""

from __future__ import annotations

from dataclasses import dataclass

from agentforge.schema import Attempt, AttemptStatus, Plan, Solution

from ._base import PendingAttempt
from .bottleneck_state import FINISHED
from .supervisor import Supervisor


@dataclass(frozen=True)
class Proposal:
    """What someone outside the loop brings: a user's kernel, a coding agent's solution."""

    bottleneck: str
    """Hash of the definition."""
    plan: Plan
    solution: Solution
    parent: str | None = None
    """Attempt that it was made from."""


def submit(supervisor: Supervisor, proposal: Proposal, number: int | None = None) -> Attempt:
    """Take a proposal through the loop's stations as an attempt of the run.

    Args:
        number: of the attempt; one that was begun under it is gone on with, and one that was finished is
            returned as it is. None is the next free number.

    Returns:
        The attempt: `done`, `failed` if the region cannot be judged, or `coded` if the run's own limit came.
    """
    run_log = supervisor.run_log
    if number is None:
        number = max((a.number for a in run_log.attempts()), default=0) + 1
    identifier = run_log.attempt_id(number)
    known = run_log.attempt(identifier)
    if known is not None and known.status in FINISHED:
        return known
    if known is None:
        known = Attempt(
            id=identifier,
            run=run_log.run.id,
            bottleneck=proposal.bottleneck,
            parent=proposal.parent,
            number=number,
            plan=proposal.plan,
        )
        supervisor.keep_plan(known)
    if known.status is AttemptStatus.PLANNED:
        supervisor.keep_solution(known, proposal.solution)
    child = PendingAttempt(attempt=identifier, bottleneck=known.bottleneck, parent=known.parent, round=number)
    supervisor.evaluate(child, bounded=False)
    supervisor.judge(child)
    supervisor.record(child)
    done = run_log.attempt(identifier)
    assert done is not None
    return done
