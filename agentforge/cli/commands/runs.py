"""`agentforge runs list | show | resume`, with the commands of `run_files.py`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentforge.views import output as _print
from agentforge.views import text as _text

from .. import _options
from . import run_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentforge.llm import CallTotal
    from agentforge.schema import Attempt, Evaluation, Run, RunStatus, Solution
    from agentforge.store import Store


def register(app: typer.Typer) -> None:
    """Add the commands."""
    runs = typer.Typer(help="List, show, compare, export, resume and remove runs.", no_args_is_help=True)
    runs.command(name="list")(list_runs)
    runs.command(name="show")(show_run)
    runs.command(name="resume")(_options.expanded(resume_run))
    runs.command(name="compare")(run_files.compare_runs)
    runs.command(name="export")(run_files.export_run)
    runs.command(name="artifact")(run_files.write_artifact)
    runs.command(name="rm")(run_files.remove_runs)
    app.add_typer(runs, name="runs")


def list_runs(config: _options.Config = None, json: _options.Json = False) -> None:
    """List all runs, newest first."""
    from agentforge.schema import NoDatabaseError

    found: tuple[Run, ...] = ()
    alive = frozenset[str]()
    with suppress(NoDatabaseError), _options.store(config, create=False) as store:
        found, alive = store.list_runs(), store.worked_on()
    if json:
        _print.as_json({"runs": [{**run.model_dump(mode="json"), "alive": run.id in alive} for run in found]})
        return
    _print.table(
        ["run", "target", "status", "device", "created", "used"],
        (
            (
                r.id,
                r.name,
                _status(r.status, alive=r.id in alive),
                r.device,
                f"{r.created:%Y-%m-%d %H:%M}",
                f"{r.seconds_used:.0f} s",
            )
            for r in found
        ),
    )


def _status(status: RunStatus, *, alive: bool) -> str:
    """A run's status; one that says it goes on was killed if no process works on it."""
    return status.value if status.over or alive else f"stopped while {status.value}"


def show_run(
    run: _options.RunIdentifier,
    source: Annotated[
        bool,
        typer.Option(help="Print the kernels that were chosen, and right ones that are unverified."),
    ] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Show one run: its report and every attempt."""
    from agentforge.analysis import build_report

    with _options.store(config, create=False) as store:
        found = store.get_run(run)
        report = build_report(store, found.id)
        attempts = [(a, _evaluation(store, a)) for a in store.attempts(found.id)]
        kernels = _kernels(store, found.id, attempts) if source else []
    if json:
        tried = [{**a.model_dump(mode="json"), "result": _result(e)} for a, e in attempts]
        whole = {**report.model_dump(mode="json"), "headline": report.headline, "tried": tried}
        if source:
            whole["kernels"] = [
                {"attempt": a.number, "state": state, "solution": solution.model_dump(mode="json")}
                for a, state, solution in kernels
            ]
        _print.as_json(whole)
        return
    from .._report import show

    show(report)
    drawn = any(a.coder for a, _ in attempts)
    _print.table(
        ["#", "parent", "strategy", *(["written by"] if drawn else []), "status", "speedup", ""],
        (
            (
                a.number,
                a.parent.rpartition("/")[2] if a.parent else "",
                a.plan.strategy if a.plan else "",
                *([a.coder if a.plan else ""] if drawn else []),
                f"{e.status.value}, {e.evidence.value}" if e else a.status.value,
                _text.speedups(e.speedup if e else {}),
                a.error or (a.critique.cause if a.critique else ""),
            )
            for a, e in attempts
        ),
    )
    if report.llm:
        _show_calls(report.llm)
    for attempt, state, solution in kernels:
        for file in solution.sources:
            _print.line(f"\nattempt {attempt.number}, {state}: {file.path}\n")
            _print.line("\n".join(file.content.splitlines()))


def _kernels(
    store: Store, run: str, attempts: list[tuple[Attempt, Evaluation | None]]
) -> list[tuple[Attempt, str, Solution]]:
    """Attempts whose kernels are worth reading: chosen, or right and unverified."""
    from agentforge.runs.unverified import unverified

    evaluations = {a.id: e for a, e in attempts}
    chosen = {(p.bottleneck, p.solution): "chosen" for p in store.promotions(run)}
    right = unverified((a for a, _ in attempts), lambda a: evaluations[a.id])
    chosen.update({(name, a.solution or ""): "right, unverified" for name, (a, _) in right.items()})
    return [
        (a, state, store.get_solution(a.solution))
        for a, _ in attempts
        if a.solution and (state := chosen.pop((a.bottleneck, a.solution), ""))
    ]


def _show_calls(calls: Sequence[CallTotal]) -> None:
    _print.table(
        ["role", "model", "calls", "failed", "tokens in", "cached", "out", "dollars", "seconds"],
        (
            (
                c.role,
                c.model,
                c.calls,
                c.failed,
                c.tokens_in,
                c.tokens_cached,
                c.tokens_out,
                "unknown" if c.dollars is None else f"{c.dollars:.4f}",
                f"{c.seconds:.1f}",
            )
            for c in calls
        ),
    )


def resume_run(
    run: _options.RunIdentifier,
    limits: _options.Limits = _options.Limits(),
    out: _options.Out = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Continue a run. Limits given here replace the run's own."""
    from agentforge.runs import resume
    from agentforge.runs.run_settings import named_limits

    from .._report import follow

    settings = _options.settings(config)
    given = named_limits(settings, (option.partition("=")[0] for option in config or ())) | limits.given()
    with _options.store(config) as store:
        follow(
            lambda on_event: resume(run, settings, limits=given, out=out, on_event=on_event, store=store),
            config,
            as_json=json,
        )


def _evaluation(store: Store, attempt: Attempt) -> Evaluation | None:
    return store.get_evaluation(attempt.evaluation) if attempt.evaluation else None


def _result(evaluation: Evaluation | None) -> dict[str, Any]:
    if evaluation is None:
        return {}
    return {
        "status": evaluation.status.value,
        "evidence": evaluation.evidence.value,
        "level": evaluation.level.value,
        "reasons": list(evaluation.reasons),
        "speedup": evaluation.speedup,
    }
