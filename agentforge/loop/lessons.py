"""What a run's attempts taught, in words, with what was expected and what was measured.

A lesson holds until the judge of a later attempt names it as contradicted by what was measured there. Those
that hold are shown to whoever plans and judges next; those that are verified too outlive the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentforge.agents import Learned
from agentforge.schema import Attempt, AttemptStatus, Critique, Evaluation, Plan

from ._base import Knowledge
from .journal import Journal
from .standing import gain_over_best

if TYPE_CHECKING:
    from .supervisor import Problem


def learned(journal: Journal, problems: Mapping[str, Problem]) -> tuple[Learned, ...]:
    """The lessons that hold, of all bottlenecks, oldest first."""
    return tuple(
        Learned(
            number=attempt.number,
            region=problems[attempt.bottleneck].bottleneck.definition.name,
            strategy=plan.strategy,
            expected_speedup=plan.expected_speedup,
            speedup=gain_over_best(evaluation) or 0.0,
            verified=evaluation.verified,
            text=critique.lesson,
        )
        for attempt, plan, evaluation, critique in _holding(journal)
    )


def teach(journal: Journal, problems: Mapping[str, Problem], knowledge: Knowledge) -> None:
    """Tell the knowledge base what holds and rests on a verified evaluation. Idempotent."""
    for attempt, plan, evaluation, critique in _holding(journal):
        if evaluation.verified:
            knowledge.learn(
                plan.strategy,
                problems[attempt.bottleneck].context,
                evaluation,
                critique.lesson,
                author=critique.author,
                expected_speedup=plan.expected_speedup,
                run=attempt.run,
            )


def _holding(journal: Journal) -> Iterator[tuple[Attempt, Plan, Evaluation, Critique]]:
    """Finished attempts that were timed and taught something that no later one contradicts."""
    done = [a for a in journal.attempts() if a.status is AttemptStatus.DONE]
    refuted = {number for a in done if a.critique is not None for number in a.critique.refutes}
    for attempt in done:
        evaluation, critique, plan = journal.evaluation(attempt), attempt.critique, attempt.plan
        if evaluation is None or critique is None or plan is None or gain_over_best(evaluation) is None:
            continue
        if critique.lesson and attempt.number not in refuted:
            yield attempt, plan, evaluation, critique
