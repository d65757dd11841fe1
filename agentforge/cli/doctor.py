"""`agentforge doctor`."""

from __future__ import annotations

import typer

from . import _options, _print

_MARKS = {"ok": "yes", "optional": "-", "missing": "NO"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(config: _options.Config = None, json: _options.Json = False) -> None:
    """What this machine can do, what is missing and how to get it; exit 2 where nothing goes without it."""
    from dataclasses import asdict

    from ._checks import State, run_checks

    checks = run_checks(_options.settings(config))
    missing = [check.name for check in checks if check.state is State.MISSING]
    if json:
        _print.as_json({"ok": not missing, "missing": missing, "checks": [asdict(c) for c in checks]})
    else:
        _print.table(
            ["group", "what", "here", "finding", "how to get it"],
            ((c.group, c.name, _MARKS[c.state.value], c.detail, c.fix) for c in checks),
        )
        ready = "This machine is ready." if not missing else f"Missing and needed: {', '.join(missing)}."
        _print.line(ready)
    if missing:
        raise typer.Exit(2)
