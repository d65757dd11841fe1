"""A finished proposal goes the way of every attempt: evaluated, judged, recorded, promoted."""

from __future__ import annotations

from dataclasses import dataclass

from agentforge.schema import Attempt, AttemptStatus, Plan, Solution

from .standing import FINISHED
from .supervisor import Child, Supervisor


@dataclass(frozen=True)
class Proposal:
    """What someone outside the loop brings: a user's kernel, a coding agent's solution."""

    bottleneck: str
    """Hash of the definition."""
    plan: Plan
    solution: Solution
    parent: str | None = None
    """Attempt that it was made from."""


def hand_in(supervisor: Supervisor, proposal: Proposal, number: int | None = None) -> Attempt:
    """Take a proposal through the loop's stations as an attempt of the run.

    Args:
        supervisor: of the run; the caller holds the run's lock.
        proposal: what is handed in.
        number: of the attempt; one that was begun under it is gone on with, and one that was finished is
            returned as it is. None is the next free number.

    Returns:
        The attempt, `done`, or `failed` where the region cannot be judged.
    """
    journal = supervisor.journal
    if number is None:
        number = max((a.number for a in journal.attempts()), default=0) + 1
    identifier = journal.attempt_id(number)
    known = journal.attempt(identifier)
    if known is not None and known.status in FINISHED:
        return known
    if known is None:
        known = Attempt(
            id=identifier,
            run=journal.run.id,
            bottleneck=proposal.bottleneck,
            parent=proposal.parent,
            number=number,
            plan=proposal.plan,
        )
        supervisor.keep_plan(known)
    if known.status is AttemptStatus.PLANNED:
        supervisor.keep_solution(known, proposal.solution)
    child = Child(attempt=identifier, bottleneck=known.bottleneck, parent=known.parent, round=number)
    supervisor.evaluate(child)
    supervisor.judge(child)
    supervisor.record(child)
    done = journal.attempt(identifier)
    assert done is not None
    return done
