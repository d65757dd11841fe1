"""What a run's attempts taught, in words, with what was expected and what was measured.

A judge's lesson is valid until the judge of a later attempt says that a measurement contradicts it. Valid
ones that are verified are kept beyond the run. What the referee's tools found in failures is a lesson too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from agentforge.agents import ShownLesson
from agentforge.knowledge import KnowledgeBase, lesson_text
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    BestBaseline,
    Critique,
    Evaluation,
    EvaluationStatus,
    Plan,
    UsageError,
)

from ._base import SearchedBottleneck
from .bottleneck_state import BottleneckState
from .run_log import RunLog

MOST_FINDINGS = 4
"""Most findings of the referee's tools, the newest, among a run's lessons."""

MOST_WORDS = 200
"""Most characters of a finding."""


def learned(run_log: RunLog, bottlenecks: Mapping[str, SearchedBottleneck]) -> tuple[ShownLesson, ...]:
    """The valid lessons of all bottlenecks, and the newest findings of the referee's tools, oldest first."""
    gains = _gains(run_log, bottlenecks)
    best = {name: BestBaseline.of(run_log.evaluations(name).values()) for name in bottlenecks}
    said = [(*one[:3], one[3].lesson, False) for one in _holding(run_log)]
    found = [(*one, True) for one in islice(_findings(run_log), MOST_FINDINGS)]
    return tuple(
        ShownLesson(
            number=attempt.number,
            region=bottlenecks[attempt.bottleneck].bottleneck.definition.name,
            strategy=plan.strategy,
            expected_speedup=plan.expected_speedup,
            speedup=best[attempt.bottleneck].speedup(evaluation) or 0.0,
            verified=evaluation.verified,
            text=text,
            credit=sum(gains[attempt.number]),
            used=len(gains[attempt.number]),
            finding=finding,
        )
        for attempt, plan, evaluation, text, finding in sorted(said + found, key=lambda one: one[0].number)
    )


def teach(run_log: RunLog, bottlenecks: Mapping[str, SearchedBottleneck], knowledge: KnowledgeBase) -> None:
    """Give the knowledge base the valid lessons that rest on a verified evaluation, and take back those that
    this run taught before and that are valid no longer."""
    valid: set[tuple[str, str | None, str]] = set()
    for attempt, plan, evaluation, critique in _holding(run_log):
        if not evaluation.verified:
            continue
        with suppress(UsageError):  # a verdict of another run, or of a cassette, may have no entry to add to
            knowledge.learn(
                plan.strategy,
                bottlenecks[attempt.bottleneck].context,
                evaluation,
                critique.lesson,
                author=critique.author,
                expected_speedup=plan.expected_speedup,
                run=attempt.run,
            )
            valid.add((plan.strategy, attempt.evaluation, lesson_text(critique.lesson)))
    run, said = run_log.run.id, {lesson_text(a.critique.lesson) for a in _done(run_log) if a.critique}
    kept = (lesson for found in run_log.store.lessons().values() for lesson in found)
    own = (lesson for lesson in kept if lesson.run == run and not lesson.claimed and lesson.text in said)
    run_log.store.remove_lessons(
        [lesson.id for lesson in own if (lesson.strategy, lesson.evaluation, lesson.text) not in valid]
    )


def _gains(run_log: RunLog, bottlenecks: Mapping[str, SearchedBottleneck]) -> dict[int, list[float]]:
    """What the attempts gained in reward that rest on a lesson, by the number of the lesson's attempt."""
    found: dict[int, list[float]] = defaultdict(list)
    for name, searched in bottlenecks.items():
        attempts = run_log.attempts(name)
        if not any(a.plan and a.plan.uses for a in attempts):
            continue
        state = BottleneckState(searched.bottleneck, attempts, run_log.evaluations(name))
        for attempt, gain in state.changes():
            for number in attempt.plan.uses if attempt.plan else ():
                found[number].append(gain)
    return found


def _done(run_log: RunLog) -> list[Attempt]:
    return [a for a in run_log.attempts() if a.status is AttemptStatus.DONE]


def _holding(run_log: RunLog) -> Iterator[tuple[Attempt, Plan, Evaluation, Critique]]:
    """Finished attempts that were timed and taught something that no later one contradicts."""
    done = _done(run_log)
    refuted = {number for a in done if a.critique is not None for number in a.critique.refutes}
    for attempt in done:
        evaluation, critique, plan = run_log.evaluation(attempt), attempt.critique, attempt.plan
        if evaluation is None or critique is None or plan is None or not evaluation.speedup:
            continue
        if critique.lesson and attempt.number not in refuted:
            yield attempt, plan, evaluation, critique


def _findings(run_log: RunLog) -> Iterator[tuple[Attempt, Plan, Evaluation, str]]:
    """Failures with an error of a compiler, an emulator or a sanitizer, newest first; an equal one once."""
    seen: set[str] = set()
    for attempt in reversed(_done(run_log)):
        evaluation, plan = run_log.evaluation(attempt), attempt.plan
        if evaluation is None or plan is None or evaluation.status is EvaluationStatus.HARNESS_ERROR:
            continue
        text = next((d.message for d in evaluation.diagnostics if d.severity == "error"), "")
        words = " ".join(text.split())[:MOST_WORDS]
        if words and not evaluation.passed and words not in seen:
            seen.add(words)
            yield attempt, plan, evaluation, words
