"""`agentforge runs list | show | resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options, _print, _text

if TYPE_CHECKING:
    from agentforge.llm import CallTotal
    from agentforge.schema import Attempt, Evaluation
    from agentforge.store import Store

Identifier = Annotated[str, typer.Argument(help="The run, or the beginning of its identifier.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    runs = typer.Typer(help="Runs: what was done, and how to go on.", no_args_is_help=True)
    runs.command(name="list")(list_runs)
    runs.command(name="show")(show_run)
    runs.command(name="resume")(resume_run)
    app.add_typer(runs, name="runs")


def list_runs(config: _options.Config = None, json: _options.Json = False) -> None:
    """All runs, the newest first."""
    with _store(config) as store:
        found = store.list_runs()
    if json:
        _print.as_json({"runs": [run.model_dump(mode="json") for run in found]})
        return
    _print.table(
        ["run", "target", "status", "device", "created", "used"],
        (
            (r.id, r.name, r.status.value, r.device, f"{r.created:%Y-%m-%d %H:%M}", f"{r.seconds_used:.0f} s")
            for r in found
        ),
    )


def show_run(run: Identifier, config: _options.Config = None, json: _options.Json = False) -> None:
    """One run: its report so far, and every attempt."""
    from agentforge.analysis import build_report
    from agentforge.llm import totals

    with _store(config) as store:
        found = store.get_run(run)
        report = build_report(store, found.id)
        attempts = [(a, _evaluation(store, a)) for a in store.attempts(found.id)]
        calls = totals(store.calls(found.id))
    if json:
        tried = [{**a.model_dump(mode="json"), "result": _result(e)} for a, e in attempts]
        asked = [total.model_dump(mode="json") for total in calls]
        whole = {**report.model_dump(mode="json"), "headline": report.headline, "tried": tried, "llm": asked}
        _print.as_json(whole)
        return
    from ._report import show

    show(report)
    _print.table(
        ["#", "parent", "strategy", "status", "speedup", ""],
        (
            (
                a.number,
                a.parent.rpartition("/")[2] if a.parent else "",
                a.plan.strategy if a.plan else "",
                f"{e.status.value}, {e.evidence.value}" if e else a.status.value,
                _text.speedups(_result(e).get("speedup", {})),
                a.error or (a.critique.cause if a.critique else ""),
            )
            for a, e in attempts
        ),
    )
    if calls:
        _show_calls(calls)


def _show_calls(calls: list[CallTotal]) -> None:
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
    run: Identifier,
    minutes: _options.Minutes = None,
    attempts: _options.Attempts = None,
    dollars: _options.Dollars = None,
    tokens: _options.Tokens = None,
    out: _options.Out = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Go on with a run where it stopped; limits given here take the place of its own."""
    from agentforge.campaigns import resume

    from ._report import campaign

    settings = _options.settings(config)
    limits = {"minutes": minutes, "attempts": attempts, "dollars": dollars, "tokens": tokens}
    changes = {key: value for key, value in limits.items() if value is not None}
    campaign(lambda on_event: resume(run, settings, limits=changes, out=out, on_event=on_event), as_json=json)


def _store(config: list[str] | None) -> Store:
    from agentforge.store import Store

    return Store(_options.settings(config).url)


def _evaluation(store: Store, attempt: Attempt) -> Evaluation | None:
    return store.get_evaluation(attempt.evaluation) if attempt.evaluation else None


def _result(evaluation: Evaluation | None) -> dict[str, Any]:
    if evaluation is None:
        return {}
    performance = evaluation.performance
    return {
        "status": evaluation.status.value,
        "evidence": evaluation.evidence.value,
        "level": evaluation.level.value,
        "reasons": list(evaluation.reasons),
        "speedup": {k: v.model_dump() for k, v in performance.speedup.items()} if performance else {},
    }
