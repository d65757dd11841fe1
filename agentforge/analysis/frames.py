"""Runs as pandas DataFrames. `frame.attrs["columns"]` describes each column with its unit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentforge.schema import FrozenModel, Interval

from ._context import StoreLike, opened, package
from .rows import AttemptRow, BottleneckRow, FindingRow, KernelRow, MetricRow, ResourceRow, RunRow
from .steps import Step
from .trajectory import Trajectory, trajectory

if TYPE_CHECKING:
    from pandas import DataFrame

_DTYPES: dict[Any, str] = {
    str: "str",
    bool: "bool",
    int: "int64",
    int | None: "Int64",
    float: "float64",
    float | None: "float64",
    datetime: "datetime64[us, UTC]",
}


def runs(store: StoreLike = None) -> DataFrame:
    """All runs, the newest first: the columns of `RunRow`.

    Args:
        store: an open store, a database's URL, or None for that of the settings.

    Raises:
        MachineError: pandas is not installed.
        StoreError: the database cannot be opened.
    """
    with opened(store) as open_store:
        return _frame(
            RunRow,
            (
                RunRow(
                    run=r.id,
                    name=r.name,
                    origin=r.origin,
                    device=r.device,
                    status=r.status.value,
                    created=r.created,
                    seconds=r.seconds_used,
                    artifact=r.artifact or "",
                    error=r.error,
                )
                for r in open_store.list_runs()
            ),
        )


def bottlenecks(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """The run's bottlenecks, those with most to gain first: the columns of `BottleneckRow`.

    Args:
        run: identifier of the run or the beginning of it; None is the newest.
        store: an open store, a database's URL, or None for that of the settings.

    Raises:
        MachineError: pandas is not installed.
        UsageError: no such run, or there is none at all.
        StoreError: the database cannot be opened.
    """
    report = trajectory(run, store).report
    profiled = report.profile.bottlenecks if report.profile else ()
    return _frame(
        BottleneckRow,
        (
            BottleneckRow(
                bottleneck=r.name,
                definition=r.definition,
                op_type=r.op_type,
                bound=r.bound,
                optimizable=b.optimizable,
                call_sites=r.call_sites,
                share=r.share,
                time_s=r.time_s,
                sol_s=r.sol_s,
                gain_s=b.gain_s,
                speedup_limit=b.speedup_limit,
                attempts=r.attempts,
                failed=r.failed,
                strategy=r.strategy,
                speedup_eager=_point(r.speedup.get("eager")),
                speedup_compile=_point(r.speedup.get("compile")),
                outcome=r.outcome,
            )
            for b, r in zip(profiled, report.regions, strict=True)
        ),
    )


def attempts(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """The run's attempts in the order of their numbers: the columns of `AttemptRow`.

    Arguments and exceptions are those of `bottlenecks`.
    """
    found = trajectory(run, store)
    return _frame(AttemptRow, (_attempt(step, found) for step in found.steps))


def metrics(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """What was measured of the run's attempts, hardware counters among it: the columns of `MetricRow`.

    Arguments and exceptions are those of `bottlenecks`.
    """
    found = trajectory(run, store)
    return _frame(
        MetricRow,
        (
            MetricRow(
                **_place(step, found),
                strategy=step.attempt.plan.strategy if step.attempt.plan else "",
                kernel=metric.kernel,
                metric=metric.name,
                value=metric.value,
                unit=metric.unit,
                source=metric.source,
                solution=step.evaluation.solution,
                evaluation=step.attempt.evaluation,
            )
            for step in found.steps
            if step.attempt.evaluation and step.evaluation
            for metric in step.evaluation.metrics
            if math.isfinite(metric.value)
        ),
    )


def kernels(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """The kernels of the run's attempts: the columns of `KernelRow`.

    Arguments and exceptions are those of `bottlenecks`.
    """
    found = trajectory(run, store)
    return _frame(
        KernelRow,
        (
            KernelRow(**_place(step, found), kernel=use.name, own=use.own, calls=use.calls, share=use.share)
            for step in found.steps
            if step.evaluation
            for use in step.evaluation.kernels
        ),
    )


def resources(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """What GPU kernels of the run's attempts take of a multiprocessor: the columns of `ResourceRow`.

    Arguments and exceptions are those of `bottlenecks`.
    """
    found = trajectory(run, store)
    return _frame(
        ResourceRow,
        (
            ResourceRow(**_place(step, found), **usage.model_dump())
            for step in found.steps
            if step.evaluation
            for usage in step.evaluation.resources
        ),
    )


def findings(run: str | None = None, store: StoreLike = None) -> DataFrame:
    """Advice of Nsight Compute's rules, hot source lines and compilers' remarks: the columns of `FindingRow`.

    Arguments and exceptions are those of `bottlenecks`.
    """
    found = trajectory(run, store)
    return _frame(
        FindingRow,
        (
            FindingRow(
                **_place(step, found),
                **finding.model_dump(exclude={"line"}),
                line=finding.line or None,
                text=step.source_line(finding),
            )
            for step in found.steps
            if step.evaluation
            for finding in step.evaluation.findings
        ),
    )


def _frame(columns: type[FrozenModel], rows: Iterable[FrozenModel]) -> DataFrame:
    """A table with these columns, in their types, without rows too."""
    pandas = package("pandas")
    kept = list(rows)
    frame = pandas.DataFrame(
        {
            name: pandas.Series([getattr(row, name) for row in kept], dtype=_DTYPES[field.annotation])
            for name, field in columns.model_fields.items()
        }
    )
    frame.attrs["columns"] = {name: field.description or "" for name, field in columns.model_fields.items()}
    return frame


def _place(step: Step, found: Trajectory) -> dict[str, Any]:
    return {"number": step.attempt.number, "bottleneck": found.name_of(step.attempt.bottleneck)}


def _point(interval: Interval | None) -> float | None:
    return interval.point if interval else None


def _attempt(step: Step, found: Trajectory) -> AttemptRow:
    attempt, evaluation, solution = step.attempt, step.evaluation, step.solution
    plan, critique, usage = attempt.plan, attempt.critique, attempt.usage
    performance = evaluation.performance if evaluation else None
    eager, compiled = (evaluation.speedup.get(b) if evaluation else None for b in ("eager", "compile"))
    best = evaluation.speedup_over_best if evaluation else None
    return AttemptRow(
        **_place(step, found),
        parent=step.parent.number if step.parent else None,
        strategy=plan.strategy if plan else "",
        language=solution.spec.language if solution else "",
        author=solution.author if solution else "",
        diagnosis=plan.diagnosis if plan else "",
        expected_speedup=plan.expected_speedup if plan else None,
        state=attempt.status.value,
        status=evaluation.status.value if evaluation else "",
        evidence=evaluation.evidence.value if evaluation else "",
        level=evaluation.level.value if evaluation else "",
        promoted=step.promoted,
        latency_s=performance.latency_s if performance else None,
        sol_s=performance.sol_s if performance else None,
        speedup_eager=_point(eager),
        eager_low=eager.low if eager else None,
        eager_high=eager.high if eager else None,
        speedup_compile=_point(compiled),
        compile_low=compiled.low if compiled else None,
        compile_high=compiled.high if compiled else None,
        speedup_best=_point(best),
        best_low=best.low if best else None,
        best_high=best.high if best else None,
        bound=evaluation.classification.bound.value if evaluation and evaluation.classification else "",
        critique=critique.kind if critique else "",
        cause=critique.cause if critique else "",
        change=critique.change if critique else "",
        lesson=critique.lesson if critique else "",
        error=attempt.error,
        seconds=usage.seconds,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        dollars=usage.dollars,
        solution=attempt.solution or "",
        evaluation=attempt.evaluation or "",
    )
