"""`agentforge audit`: judge other people's kernels again, and compare with what was claimed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentforge.views import output as _print

from .. import _interrupt, _options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="audit")(audit_command)


def audit_command(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="Folder or file with kernels and claims.")],
    problems: Annotated[
        Path | None,
        typer.Option(
            "--problems",
            metavar="DIR",
            help="Folder with the references: your own clone of KernelBench, or a task of GPU MODE's. A "
            "reference runs outside the sandbox, so take it from a place that you trust.",
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            help="auto, claims, kernelbench, cuda-l1, flashinfer, sol, gpu-mode, or a plug-in's name.",
        ),
    ] = "auto",
    only: Annotated[
        str, typer.Option("--only", metavar="PATTERN", help="Submissions by identifier, e.g. 'level1/*'.")
    ] = "*",
    level: Annotated[str, typer.Option("--level", help="full, or quick, which verifies nothing.")] = "full",
    again: Annotated[
        bool, typer.Option("--again", help="Judge all anew; without it, stored verdicts are taken.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the audit as Markdown too.")
    ] = None,
    device: _options.Device = "auto",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Judge other people's kernels again: claimed against verified, and which check caught each cheat.

    Exit codes: 0 nothing is refuted, 1 a submission is. The same command continues an interrupted audit.
    """
    settings = _options.settings(config)
    from agentforge.campaigns.audit import Outcome, audit, read_submissions, render
    from agentforge.schema import Level, UsageError

    if level not in (Level.QUICK, Level.FULL):
        raise UsageError(f"--level takes quick or full, not {level!r}")
    name, found = read_submissions(
        place, layout=layout, problems=problems, scratch=settings.home / "audits", only=only
    )
    if markdown is not None:
        _options.write_out(markdown, "", option="--markdown", mode="a")

    def interrupted() -> None:
        _print.aside("agentforge: interrupted; the same command continues the audit")
        if json:
            _print.as_json({"error": "interrupted", "exit_code": _interrupt.INTERRUPTED})
            sys.stdout.flush()

    _interrupt.last_word(lambda: _interrupt.once(interrupted))
    with _options.store(config) as store:
        result = audit(
            str(place),
            name,
            found,
            settings,
            store,
            level=Level(level),
            device=device,
            again=again,
            progress=_print.aside,
        )
    if markdown is not None:
        _options.write_out(markdown, render.markdown(result), option="--markdown")
    if json:
        _print.as_json(
            {**result.model_dump(mode="json"), "outcomes": result.outcomes, "caught": result.caught}
        )
    else:
        _print.table(render.COLUMNS, map(render.row, result.items))
        _print.line(render.said(result))
    raise typer.Exit(int(Outcome.REFUTED.value in result.outcomes))
