"""A run in front of a person or a program: progress while it runs, the report at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from agentforge.views import live as _live
from agentforge.views import output as _print
from agentforge.views import text as _text

from . import _interrupt, _options

if TYPE_CHECKING:
    from agentforge.analysis import Report
    from agentforge.llm import CallTotal
    from agentforge.loop import OnEvent
    from agentforge.views.run_state import RunState


def follow(run: Callable[[OnEvent], Report], config: Sequence[str] | None, *, as_json: bool) -> None:
    """Run with a view, then show the report.

    Args:
        run: carries out the run.
        config: overrides of settings.
        as_json: print one JSON object.

    Raises:
        typer.Exit: interrupted (130); the user knows how to continue.
        Exception: as `run`; its `way_on` names the run, once there is one, and the command that continues it.
    """
    view = _live.view(as_json=as_json)
    _interrupt.last_word(lambda: _cut_short(view.run_state, config, as_json=as_json))
    try:
        with view:
            report = run(view)
    except KeyboardInterrupt as error:
        _interrupt.leave()
        _interrupt.once(lambda: _interrupted(view.run_state.run, config, as_json=as_json))
        raise typer.Exit(130) from error
    except Exception as error:
        if name := view.run_state.run:
            vars(error)["way_on"] = {"run": name, "resume": _resume(name, config)}
        raise
    if as_json:
        _print.as_json({"headline": report.headline, **report.model_dump(mode="json")})
    else:
        show(report)


def _cut_short(state: RunState, config: Sequence[str] | None, *, as_json: bool) -> None:
    """Write down that a run was interrupted which did not end by itself, and say how to continue."""
    from agentforge.schema import RunInterrupted, RunStatus

    run = state.run
    with suppress(OSError):  # the reader may have been interrupted first, and the terminal closed
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # the live table hid the cursor
        _interrupt.once(lambda: _interrupted(run, config, as_json=as_json))
        sys.stdout.flush()
    if run:
        store, error = _options.store(config), "interrupted by the user"
        if not (kept := store.get_run(run)).status.over:
            store.update_run(
                run,
                status=RunStatus.INTERRUPTED,
                error=error,
                seconds_used=state.seconds_used,
                stitched_s=kept.stitched_s + state.stitching_s,
            )
            store.append_event(run, RunInterrupted(error=error))


def _resume(run: str, config: Sequence[str] | None) -> str:
    return f"agentforge runs resume {run}{_options.same_database(config)}"


def _interrupted(run: str, config: Sequence[str] | None, *, as_json: bool) -> None:
    command = _resume(run, config) if run else ""
    if as_json:
        _print.as_json({"error": "interrupted", "exit_code": 130, "run": run, "resume": command})
    else:
        typer.echo(f"agentforge: interrupted; continue with: {command}" if run else "interrupted", err=True)


def show(report: Report) -> None:
    """The report as tables on stdout."""
    from agentforge.schema import baseline_name

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
                    baseline_name(name),
                    _text.seconds(before),
                    _text.seconds(performance.latency_s),
                    performance.speedup[name],
                )
                for name, before in performance.baseline_s.items()
            ),
        )
    if rates := report.tokens_per_second:
        _print.table(
            ["tokens per second", *rates],
            (
                (baseline_name(name), *(f"{found[name]:,.1f}" for found in rates.values()))
                for name in next(iter(rates.values()))
            ),
        )
    if report.plan is not None:
        plan = report.plan
        said = f"{plan.author}, {plan.expected_speedup:.2f}x expected for the whole model"
        _print.line(f"plan ({said}): {plan.diagnosis or 'no region is worth a kernel'}")
    promoted = any(r.share_now is not None for r in report.regions)
    _print.table(
        [
            "region",
            "sites",
            "share",
            *(["share now"] if promoted else []),
            "order",
            "strategy",
            "alone over eager",
            "over torch.compile",
            "calls",
            "outcome",
        ],
        (
            (
                r.name,
                r.call_sites,
                f"{r.share:.1%}",
                *([f"{r.share_now:.1%}" if r.share_now is not None else ""] if promoted else []),
                "" if r.place is None else r.place,
                r.strategy,
                *(r.speedup.get(b, "") for b in BASELINES),
                "" if r.calls is None else r.calls,
                r.outcome,
            )
            for r in report.regions
        ),
    )
    if report.models:
        _print.table(
            ["written by", "attempts", "right", "mean reward", "dollars"],
            (
                (
                    m.model,
                    m.attempts,
                    m.passed,
                    "" if m.reward is None else f"{m.reward:.3f}",
                    "unknown" if m.dollars is None else f"{m.dollars:.4f}",
                )
                for m in report.models
            ),
        )
    if report.directives:
        _print.table(
            ["directive", "edits", "attempts", "mean gain", ""],
            (
                (
                    d.id,
                    d.parent,
                    d.attempts,
                    "" if d.gain is None else f"{d.gain:+.3f}",
                    " ".join(d.text.split())[:60],
                )
                for d in report.directives
            ),
        )
    for note in report.notes:
        _print.line(f"note: {note}")
    if report.stopped:
        tried = f"{report.attempts} attempt{'' if report.attempts == 1 else 's'}"
        _print.line(f"search: {tried}; {report.stopped}; the run took {report.seconds:.0f} s")
    if report.first_verdict_s is not None:
        _print.line(f"first verdict: {report.first_verdict_s:.0f} s after the profile")
    if report.llm:
        _print.line(f"language models: {_paid(report.llm)}")
    if run.artifact:
        _print.line(f"artifact: {run.artifact}")


def _paid(calls: Sequence[CallTotal]) -> str:
    """What a run's calls came to."""
    tokens = sum(c.tokens_in + c.tokens_out for c in calls)
    known = [c.dollars for c in calls if c.dollars is not None]
    price = f"{sum(known):.4f} dollars" if len(known) == len(calls) else "price unknown"
    number, failed = sum(c.calls for c in calls), sum(c.failed for c in calls)
    said = f"{number} call{'' if number == 1 else 's'}" + (f" ({failed} failed)" if failed else "")
    return f"{said}, {tokens} tokens, {price}"


BASELINES = ("eager", "compile")
