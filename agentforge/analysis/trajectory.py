"""The trajectory of a run: at each bottleneck, what was tried from what, why, and what came of it."""

from __future__ import annotations

from typing import Any

from agentforge.loop import BottleneckState, RunLog
from agentforge.schema import Bottleneck, Run
from agentforge.store import Store

from ._context import StoreLike, chosen, opened
from .figures import roofline, speedups
from .html import page
from .report import build_report
from .steps import RunSteps, Search, Step


class Trajectory(RunSteps):
    """A run as it went; Jupyter shows it as a page."""

    def plot(self) -> Any:
        """Speedup over the attempts as a plotly figure: see `figures.speedups`."""
        return speedups(self)

    def roofline(self) -> Any:
        """Achieved rate against arithmetic intensity as a plotly figure: see `figures.roofline`."""
        return roofline(self)

    def _repr_html_(self) -> str:
        return page(self)

    def __repr__(self) -> str:
        return f"<Trajectory of run {self.run.id}: {len(self.steps)} attempts. {self.report.headline}>"


def trajectory(run: str | None = None, store: StoreLike = None) -> Trajectory:
    """The trajectory of a run, as far as it has come.

    Raises:
        UsageError: no such run, or there is none at all.
        StoreError: the database cannot be opened.
    """
    with opened(store) as open_store:
        return read_trajectory(open_store, chosen(open_store, run))


def read_trajectory(store: Store, run: Run) -> Trajectory:
    """The trajectory of a run of an open store."""
    report, run_log = build_report(store, run.id), RunLog(store, run)
    bottlenecks = report.profile.bottlenecks if report.profile else ()
    searches = (Search(b, _steps(run_log, b)) for b in bottlenecks)
    return Trajectory(report, tuple(search for search in searches if search.steps))


def _steps(run_log: RunLog, bottleneck: Bottleneck) -> tuple[Step, ...]:
    key = bottleneck.definition.hash
    attempts, evaluations = run_log.attempts(key), run_log.evaluations(key)
    best = {attempt.id for attempt, _ in BottleneckState(bottleneck, attempts, evaluations).promotions}
    steps: dict[str, Step] = {}
    for attempt in attempts:
        above = steps.get(attempt.parent or "")
        steps[attempt.id] = Step(
            attempt=attempt,
            depth=above.depth + 1 if above else 0,
            parent=above.attempt if above else None,
            solution=run_log.solution_of(attempt) if attempt.solution else None,
            before=above.solution if above else None,
            evaluation=evaluations.get(attempt.id),
            promoted=attempt.id in best,
        )
    return tuple(steps.values())
