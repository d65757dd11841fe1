"""Facts from earlier attempts: repeated failures, closed strategies, attempts worth showing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from agentforge.agents._base import Past, ShownLesson, Task, cheated, honest
from agentforge.agents.playbook.facts import refusal
from agentforge.knowledge import APART
from agentforge.schema import (
    BestBaseline,
    Evaluation,
    EvaluationStatus,
    Finding,
    Plan,
    Precedent,
    ReasonCode,
    Solution,
    SourceFile,
)

REPEATED = 2
"""A strategy is closed after this many equal failures."""

MOST_SHOWN = 20_000
"""Earlier attempts with more characters are not shown, so that prompts stay below 30k tokens."""

MOST_MESSAGE = 160
"""Most characters of a failure's message, and of a plan's step, in a list of attempts."""

CHARACTERS_PER_TOKEN = 4
"""For the budget of earlier runs' solutions."""

HEADER = "vector_math.h"
"""Header of the playbook's kernels, which a language model's may include."""

MOST_LESSONS = 12
"""Most lessons of a run in one prompt; those with the lowest credit are left out first."""

_NOISE = (
    (re.compile(r"(?:[A-Za-z]:)?(?:/[\w.+-]+)+/"), ""),  # folders
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "HASH"),
    (re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Shown:
    """An attempt as prompts show it."""

    number: str
    strategy: str
    speedup: float | None
    """None if it is right and cannot be timed here."""
    solution: Solution
    verified: bool

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Its files as prompts show them."""
        return shown_files(self.solution)


@dataclass(frozen=True)
class Reflection:
    """The expected and the measured result of a plan."""

    number: str
    strategy: str
    step: str
    """The plan's last step, which is the judge's change if it carries one out; empty if it has no steps."""
    expected: float
    outcome: str


def fingerprint(past: Past) -> str:
    """The failure without paths, addresses, hashes and numbers; empty if nothing failed."""
    return _normal(_said(past))


def failure(past: Past) -> str:
    """The failure in the referee's or the coder's words; empty if nothing failed."""
    return _said(past)[:MOST_MESSAGE]


def _said(past: Past) -> str:
    evaluation = past.evaluation
    if evaluation is None:
        return f"NO_SOLUTION {past.error}" if past.error else ""
    if evaluation.passed or evaluation.status is EvaluationStatus.HARNESS_ERROR:
        return ""
    errors = [d.message for d in evaluation.diagnostics if d.severity == "error"]
    return f"{evaluation.status.value} {errors[0] if errors else next(iter(evaluation.reasons), '')}"


def _normal(text: str) -> str:
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()[:200]


def closed_strategies(task: Task) -> dict[str, str]:
    """Strategies that must not be chosen again, with the reason.

    Failures whose repair by the same strategy passed do not count, nor attempts that were neither judged nor
    refused by the coder.
    """
    closed: dict[str, str] = {}
    repaired = _repaired(task)
    failures: Counter[tuple[str, str]] = Counter()
    for past in earlier_attempts(task):
        if past.plan is None:
            continue
        strategy = past.plan.strategy
        if cheated(past):
            closed[strategy] = "the referee rejected its solution as cheating"
        elif past.id not in repaired and (past.evaluation or refusal(past)) and (mark := fingerprint(past)):
            failures[strategy, mark] += 1
            if failures[strategy, mark] >= REPEATED:
                closed.setdefault(strategy, f"it failed {REPEATED} times in the same way ({failure(past)})")
    return closed


def _repaired(task: Task) -> set[str]:
    """Failures that led, by repairs of the same strategy, to an attempt that passed."""
    by_id, repaired = {past.id: past for past in task.past}, set[str]()
    for past in earlier_attempts(task):
        above = by_id.get(past.parent or "") if _passed(past) else None
        while above is not None and not _passed(above) and _strategy(above) == _strategy(past):
            repaired.add(above.id)
            above = by_id.get(above.parent or "")
    return repaired


def _passed(past: Past) -> bool:
    return past.evaluation is not None and past.evaluation.passed


def _strategy(past: Past) -> str:
    return past.plan.strategy if past.plan is not None else ""


def earlier_attempts(task: Task) -> Iterator[Past]:
    """All attempts except the current one."""
    return (past for past in task.past if past.id != task.attempt)


def contrast(task: Task, leave_out: str | None = None) -> list[Shown]:
    """The slowest and the fastest attempt that passed and builds on no cheat; the oldest comes first if
    nothing is timed here."""
    speedup = task.best_baseline.speedup
    passed = [
        Shown(number_of(past), past.plan.strategy, gain, past.solution, past.evaluation.verified)
        for past in honest(task.past)
        if past.plan is not None and past.solution is not None and past.evaluation is not None
        and past.id not in (task.attempt, leave_out) and past.solution.author != "inductor"
        and length(past.solution) <= MOST_SHOWN
        and ((gain := speedup(past.evaluation)) is not None or past.evaluation.because(ReasonCode.UNTIMED))
    ]  # fmt: skip
    ordered = sorted(passed, key=lambda s: s.speedup or 0.0)
    return ordered if len(ordered) <= 2 else [ordered[0], ordered[-1]]


def precedents(task: Task, language: str) -> list[Precedent]:
    """Verified solutions of earlier runs, one of each of up to three buckets of speedup, slowest first.

    The contrast of CUDA-L1 (Li et al., 2025, arXiv:2507.14111): the fastest, the slowest, and the one nearest
    to the middle. A bucket begins at its fastest solution and is `APART` wide. Code of this run, and code
    that is longer than half of the budget, is left out. None unless there are two buckets.
    """
    most = task.contrast_tokens * CHARACTERS_PER_TOKEN
    own = {past.solution.hash for past in task.past if past.solution is not None}
    found = [
        precedent
        for precedent in (task.precedents(language) if task.precedents is not None else ())
        if precedent.solution.hash not in own and length(precedent.solution) <= most // 2
    ]
    buckets: list[Precedent] = []
    for precedent in sorted(found, key=lambda p: (-p.log_speedup, p.solution.hash)):
        if not buckets or buckets[-1].log_speedup - precedent.log_speedup >= APART:
            buckets.append(precedent)
    if len(buckets) < 2:
        return []
    fastest, *others, slowest = buckets
    middle = (fastest.log_speedup + slowest.log_speedup) / 2
    between = sorted(others, key=lambda p: abs(p.log_speedup - middle))
    left = most - length(fastest.solution) - length(slowest.solution)
    return [slowest, *[p for p in between if length(p.solution) <= left][:1], fastest]


def shown_files(solution: Solution) -> tuple[SourceFile, ...]:
    """The files of a solution without the header that the playbook ships with each of its kernels."""
    return tuple(file for file in solution.sources if file.path != HEADER)


def length(solution: Solution) -> int:
    """Characters of the files that are shown."""
    return sum(len(file.content) for file in shown_files(solution))


def best_verified(task: Task) -> Shown | None:
    """The fastest earlier attempt that was verified to be faster than eager, with its speedup over the best
    baseline."""
    speedup = task.best_baseline.speedup
    found = [
        (eager.point, Shown(number_of(past), past.plan.strategy, gain, past.solution, True))
        for past in earlier_attempts(task)
        if past.plan is not None and past.solution is not None and past.evaluation is not None
        and past.evaluation.verified and (eager := past.evaluation.speedup.get("eager")) is not None
        and eager.low > 1 and (gain := speedup(past.evaluation)) is not None
    ]  # fmt: skip
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def told_findings(evaluation: Evaluation) -> tuple[Finding, ...]:
    """The findings without those on hand-written vector code, which the vectoriser cannot read."""
    return tuple(f for f in evaluation.findings if "no vectype for stmt" not in str(f))


def reflections(task: Task) -> list[Reflection]:
    """Expected against measured, oldest first."""
    return [
        Reflection(
            number_of(past),
            past.plan.strategy,
            _last_step(past.plan),
            past.plan.expected_speedup,
            outcome(past, task.best_baseline),
        )
        for past in earlier_attempts(task)
        if past.plan is not None
    ]


def _last_step(plan: Plan) -> str:
    return " ".join(plan.steps[-1].split())[:MOST_MESSAGE] if plan.steps else ""


def best_lessons(task: Task) -> tuple[ShownLesson, ...]:
    """The run's lessons with the most credit, without duplicates, oldest first; of equals the latest ones."""
    latest = {lesson.text: lesson for lesson in task.lessons}
    best = nlargest(MOST_LESSONS, latest.values(), key=lambda lesson: (lesson.credit, lesson.number))
    return tuple(sorted(best, key=lambda lesson: lesson.number))


def number_of(past: Past) -> str:
    """Short name of an attempt: `#3`."""
    found = re.search(r"(\d+)$", past.id)
    return f"#{int(found[1])}" if found else past.id


def outcome(past: Past, best: BestBaseline) -> str:
    """What came of an attempt, in a few words."""
    gain = best.speedup(past.evaluation)
    if gain is not None and past.evaluation is not None:
        return f"{gain:.3g}x measured, " + ("verified" if past.evaluation.verified else "not verified")
    if cheated(past):
        return "rejected as cheating"
    if past.evaluation is not None and past.evaluation.passed:
        return "right, and not timed"
    return failure(past) or "not measured"
