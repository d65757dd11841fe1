"""`agentforge recheck`: judge artifacts again, for a nightly job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentforge.views import output as _print

from .. import _options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="recheck")(recheck_command)


def recheck_command(
    artifacts: Annotated[list[Path], typer.Argument(metavar="ARTIFACT...", help="Folders that runs wrote.")],
    patience: _options.Patience = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Say whether artifacts are still right and still faster with this torch, compiler and driver.

    Exit codes: 0 all are, 1 one is not, or that was not decided.
    """
    settings = _options.settings(config, referee__patience_s=patience)
    from agentforge.campaigns.recheck import check_artifact, recheck

    for artifact in artifacts:
        check_artifact(artifact)  # before the first one is judged, which takes minutes
    progress = None if json else _print.aside
    found = []
    for artifact in artifacts:
        if progress is not None:
            progress(f"judging {artifact}")
        found.append(recheck(artifact, settings, progress))
        if not json:
            _print.line(found[-1].sentence)
    if json:
        _print.as_json({"ok": all(one.ok for one in found), "artifacts": found})
    raise typer.Exit(int(not all(one.ok for one in found)))
