"""What earlier attempts say: failures that repeat, strategies that are closed, attempts worth showing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agentforge.agents._base import Learned, Past, Task
from agentforge.agents.playbook.facts import speedup
from agentforge.schema import EvaluationStatus, Solution

REPEATED = 2
"""Equal failures of a strategy after which another one must be chosen."""

MOST_SHOWN = 20_000
"""Characters of an earlier attempt's sources beyond which it is not shown: prompts stay below 30k tokens."""

MOST_LESSONS = 6
"""Of a run, in one prompt."""

_NOISE = (
    (re.compile(r"(?:[A-Za-z]:)?(?:/[\w.+-]+)+/"), ""),  # folders
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "HASH"),
    (re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Shown:
    """An attempt as a prompt shows it."""

    number: str
    strategy: str
    speedup: float
    solution: Solution
    verified: bool


@dataclass(frozen=True)
class Reflection:
    """What was expected of a plan against what came of it."""

    number: str
    strategy: str
    expected: float
    outcome: str


def fingerprint(past: Past) -> str:
    """What failed, without paths, addresses, hashes and numbers; empty where nothing failed."""
    evaluation = past.evaluation
    if evaluation is None:
        return _normal(f"NO_SOLUTION {past.error}") if past.error else ""
    if evaluation.passed or evaluation.status is EvaluationStatus.HARNESS_ERROR:
        return ""
    errors = [d.message for d in evaluation.diagnostics if d.severity == "error"]
    said = errors[0] if errors else next(iter(evaluation.reasons), "")
    return _normal(f"{evaluation.status.value} {said}")


def _normal(text: str) -> str:
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()[:200]


def cheated(past: Past) -> bool:
    """Whether the referee called it cheating."""
    return past.evaluation is not None and past.evaluation.status is EvaluationStatus.CHEATING


def closed_strategies(task: Task) -> dict[str, str]:
    """Strategies that must not be chosen again, with the reason."""
    closed: dict[str, str] = {}
    failures: Counter[tuple[str, str]] = Counter()
    for past in others(task):
        if past.plan is None:
            continue
        strategy = past.plan.strategy
        if cheated(past):
            closed[strategy] = "the referee rejected its solution as cheating"
        elif mark := fingerprint(past):
            failures[strategy, mark] += 1
            if failures[strategy, mark] >= REPEATED:
                closed.setdefault(strategy, f"it failed {REPEATED} times in the same way ({mark})")
    return closed


def others(task: Task) -> Iterator[Past]:
    """Earlier attempts, without the one that is being made."""
    return (past for past in task.past if past.id != task.attempt)


def contrast(task: Task, leave_out: str | None = None, most: int = 2) -> list[Shown]:
    """The slowest and the fastest attempts that passed, for reading side by side, slower first.

    Args:
        task: the task.
        leave_out: an attempt that the prompt shows anyway.
        most: attempts to show.
    """
    passed = [
        Shown(number_of(past), past.plan.strategy, gain, past.solution, past.evaluation.verified)
        for past in others(task)
        if past.plan is not None and past.solution is not None and past.evaluation is not None
        and past.id != leave_out and past.solution.author != "inductor"
        and sum(len(s.content) for s in past.solution.sources) <= MOST_SHOWN
        and (gain := speedup(past.evaluation)) is not None
    ]  # fmt: skip
    ordered = sorted(passed, key=lambda s: s.speedup)
    return ordered if len(ordered) <= most else [ordered[0], *ordered[len(ordered) - most + 1 :]]


def reflections(task: Task) -> list[Reflection]:
    """Expected against measured, oldest first."""
    return [
        Reflection(number_of(past), past.plan.strategy, past.plan.expected_speedup, _outcome(past))
        for past in others(task)
        if past.plan is not None
    ]


def told(task: Task) -> tuple[Learned, ...]:
    """The run's latest lessons, those that say the same once."""
    latest = {lesson.text: lesson for lesson in task.lessons}
    return tuple(latest.values())[-MOST_LESSONS:]


def number_of(past: Past) -> str:
    """Short name of an attempt: `#3`."""
    found = re.search(r"(\d+)$", past.id)
    return f"#{int(found[1])}" if found else past.id


def _outcome(past: Past) -> str:
    gain = speedup(past.evaluation)
    if gain is not None and past.evaluation is not None:
        return f"{gain:.3g}x measured" + (", verified" if past.evaluation.verified else "")
    if cheated(past):
        return "rejected as cheating"
    if past.evaluation is not None and past.evaluation.passed:
        return "right, and not timed"
    return fingerprint(past) or "not measured"
