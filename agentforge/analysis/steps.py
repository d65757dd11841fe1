"""The trajectory of a run: at each bottleneck, what was tried from what, why, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentforge.loop import Journal, Standing
from agentforge.schema import Attempt, Bottleneck, Evaluation, Finding, Run, Solution
from agentforge.store import Store

from .diffs import DiffLine, difference, lines_of
from .opening import StoreLike, chosen, opened
from .report import Report, build_report


@dataclass(frozen=True)
class Step:
    """An attempt with all that it refers to."""

    attempt: Attempt
    depth: int
    """Attempts between it and a root of the tree: 0 where it was made from nothing."""
    parent: Attempt | None
    """That it mends or improves."""
    solution: Solution | None
    before: Solution | None
    """The parent's solution."""
    evaluation: Evaluation | None
    promoted: bool
    """Verified, and faster than eager and all attempts before it."""

    @property
    def outcome(self) -> str:
        """`verified`, `suspicious`, `unverified`, the status where it did not pass, or how far it came."""
        if self.evaluation is None:
            return self.attempt.status.value
        return (self.evaluation.evidence if self.evaluation.passed else self.evaluation.status).value

    @property
    def changes(self) -> tuple[DiffLine, ...]:
        """Its source against the parent's."""
        return difference(self.before, self.solution) if self.solution else ()

    def source_line(self, finding: Finding) -> str:
        """Text of the line that a finding is about; empty where it names none of this solution's."""
        files = self.solution.sources if self.solution else ()
        lines = next((lines_of(file) for file in files if file.path == finding.file), [])
        return lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""


@dataclass(frozen=True)
class Search:
    """The attempts at one bottleneck."""

    bottleneck: Bottleneck
    steps: tuple[Step, ...]
    """In the order of their numbers."""

    @property
    def tree(self) -> tuple[Step, ...]:
        """Each attempt followed by those that were made from it."""
        below: dict[str | None, list[Step]] = {}
        for step in reversed(self.steps):
            below.setdefault(step.parent.id if step.parent else None, []).append(step)
        order, waiting = [], below.get(None, [])
        while waiting:
            order.append(step := waiting.pop())
            waiting += below.get(step.attempt.id, [])
        return tuple(order)


@dataclass(frozen=True)
class Trajectory:
    """A run as it went; Jupyter shows it as a page."""

    report: Report
    searches: tuple[Search, ...]
    """One for each bottleneck that was attempted, in the profile's order."""

    @property
    def run(self) -> Run:
        """The run."""
        return self.report.run

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All attempts of the run, in the order of their numbers."""
        every = (step for search in self.searches for step in search.steps)
        return tuple(sorted(every, key=lambda step: step.attempt.number))

    def name_of(self, definition: str) -> str:
        """Of the bottleneck whose definition has this hash."""
        return next((r.name for r in self.report.regions if r.definition == definition), definition)

    def plot(self) -> Any:
        """Speedup over the attempts as a plotly figure: see `figures.speedups`."""
        from .figures import speedups

        return speedups(self)

    def roofline(self) -> Any:
        """Achieved rate against arithmetic intensity as a plotly figure: see `figures.roofline`."""
        from .figures import roofline

        return roofline(self)

    def _repr_html_(self) -> str:
        from .page import page

        return page(self)

    def __repr__(self) -> str:
        return f"<Trajectory of run {self.run.id}: {len(self.steps)} attempts. {self.report.headline}>"


def trajectory(run: str | None = None, store: StoreLike = None) -> Trajectory:
    """The trajectory of a run, as far as it has come.

    Args:
        run: identifier of the run or the beginning of it; None is the newest.
        store: an open store, a database's URL, or None for that of the settings.

    Raises:
        UsageError: no such run, or there is none at all.
        StoreError: the database cannot be opened.
    """
    with opened(store) as open_store:
        return read_trajectory(open_store, chosen(open_store, run))


def read_trajectory(store: Store, run: Run) -> Trajectory:
    """The trajectory of a run of an open store."""
    report, journal = build_report(store, run.id), Journal(store, run)
    bottlenecks = report.profile.bottlenecks if report.profile else ()
    searches = (Search(b, _steps(journal, b)) for b in bottlenecks)
    return Trajectory(report, tuple(search for search in searches if search.steps))


def _steps(journal: Journal, bottleneck: Bottleneck) -> tuple[Step, ...]:
    key = bottleneck.definition.hash
    attempts, evaluations = journal.attempts(key), journal.evaluations(key)
    best = {attempt.id for attempt, _ in Standing(bottleneck, attempts, evaluations).promotions}
    steps: dict[str, Step] = {}
    for attempt in attempts:
        above = steps.get(attempt.parent or "")
        steps[attempt.id] = Step(
            attempt=attempt,
            depth=above.depth + 1 if above else 0,
            parent=above.attempt if above else None,
            solution=journal.solution(attempt.solution) if attempt.solution else None,
            before=above.solution if above else None,
            evaluation=evaluations.get(attempt.id),
            promoted=attempt.id in best,
        )
    return tuple(steps.values())
