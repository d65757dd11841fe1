"""A campaign in front of a person or a program: progress while it goes on, the report at the end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from . import _live, _print, _text

if TYPE_CHECKING:
    from agentforge.analysis import Report
    from agentforge.loop import OnEvent


def campaign(run: Callable[[OnEvent], Report], *, as_json: bool) -> None:
    """Run with a view, then show the report.

    Raises:
        typer.Exit: interrupted (130); how to go on was said.
    """
    view = _live.view(as_json=as_json)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run says that it can go on
    try:
        with view:
            report = run(view)
    except KeyboardInterrupt as error:
        _interrupted(view.board.run, as_json=as_json)
        raise typer.Exit(130) from error
    if as_json:
        _print.as_json({"headline": report.headline, **report.model_dump(mode="json")})
    else:
        show(report)


def _interrupted(run: str, *, as_json: bool) -> None:
    command = f"agentforge runs resume {run}" if run else ""
    if as_json:
        _print.as_json({"error": "interrupted", "exit_code": 130, "run": run, "resume": command})
    else:
        typer.echo(f"agentforge: interrupted; go on with: {command}" if run else "interrupted", err=True)


def show(report: Report) -> None:
    """The report as tables on stdout."""
    run = report.run
    _print.line(f"run {run.id} ({run.status.value}): {run.name} on {run.device}")
    _print.line(report.headline)
    evaluation = report.end_to_end
    if evaluation is not None and evaluation.performance is not None:
        performance = evaluation.performance
        _print.table(
            ["end to end, against", "before", "after", "speedup, 95%"],
            (
                (
                    name,
                    _text.seconds(before),
                    _text.seconds(performance.latency_s),
                    _text.interval(performance.speedup[name].model_dump()),
                )
                for name, before in performance.baseline_s.items()
            ),
        )
    if report.plan is not None:
        plan = report.plan
        said = f"{plan.author}, {plan.expected_speedup:.2f}x expected of the whole"
        _print.line(f"plan ({said}): {plan.diagnosis or 'nothing to be had'}")
    _print.table(
        [
            "region",
            "sites",
            "share",
            "order",
            "strategy",
            "alone over eager",
            "over compile",
            "calls",
            "outcome",
        ],
        (
            (
                r.name,
                r.call_sites,
                f"{r.share:.1%}",
                "" if r.place is None else r.place,
                r.strategy,
                *(_text.interval(r.speedup[b].model_dump()) if b in r.speedup else "" for b in BASELINES),
                "" if r.calls is None else r.calls,
                r.outcome,
            )
            for r in report.regions
        ),
    )
    for note in report.notes:
        _print.line(f"note: {note}")
    if report.stopped:
        _print.line(f"search: {report.attempts} attempts in {report.seconds:.0f} s; {report.stopped}")
    if run.artifact:
        _print.line(f"artifact: {run.artifact}")


BASELINES = ("eager", "compile")
