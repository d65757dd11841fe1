"""`agentforge doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentforge.views import output as _print

from .. import _options

if TYPE_CHECKING:
    from agentforge.config import Settings

_MARKS = {"ok": "yes", "optional": "-", "missing": "NO"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Try what the GPU can do, one thing after the other."),
    ] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Check what this machine can do and how to install missing parts.

    Exit code 2 if something vital is missing, or with --gpu if kernels cannot be judged on it.
    """
    if gpu:
        _climb(_options.settings(config), json)
        return
    from dataclasses import asdict

    from .._doctor import State, run_checks

    checks = run_checks(_options.settings(config))
    missing = [check.name for check in checks if check.state is State.MISSING]
    if json:
        _print.as_json({"ok": not missing, "missing": missing, "checks": [asdict(c) for c in checks]})
    else:
        _print.table(
            ["group", "name", "found", "detail", "how to install"],
            ((c.group, c.name, _MARKS[c.state.value], c.detail, c.fix) for c in checks),
        )
        ready = "This machine is ready." if not missing else f"Missing and required: {', '.join(missing)}."
        _print.line(ready)
    if missing:
        raise typer.Exit(2)


def _climb(settings: Settings, json: bool) -> None:
    from agentforge.devices import MEANING, detect
    from agentforge.devices.fallbacks import remember
    from agentforge.ladder import LADDER, RungOutcome, RungResult, climb

    titles = {rung.name: rung.tries for rung in LADDER}

    def show(result: RungResult) -> None:
        mark = {RungOutcome.WORKS: "yes", RungOutcome.FAILS: "NO ", RungOutcome.NOT_TRIED: "-  "}[
            result.outcome
        ]
        _print.line(f"{mark} {result.rung}: {titles[result.rung]} ({result.seconds:.1f} s)  {result.detail}")
        if result.fix and result.outcome is RungOutcome.FAILS:
            _print.line(f"    to do: {result.fix}")

    ladder = climb(on_rung=None if json else show)
    broken = ladder.broken
    if not broken:
        remember(detect("cuda"), settings.cache, ladder.fallbacks)
    if json:
        _print.as_json({"ok": not broken, "fallbacks": ladder.fallbacks, **ladder.model_dump(mode="json")})
    elif broken:
        _print.line(f"Kernels cannot be judged on a GPU here: {broken.rung} {broken.outcome}. The CPU works.")
    else:
        for lost in ladder.fallbacks:
            _print.line(f"Done without: {MEANING[lost]}.")
        _print.line("This GPU is ready.")
    if broken:
        raise typer.Exit(2)
