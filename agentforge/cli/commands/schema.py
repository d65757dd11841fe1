"""`agentforge schema`: the JSON schemas of what commands print with `--json`."""

from __future__ import annotations

from typing import Annotated

import typer

from agentforge.views import output as _print


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(context_settings={"ignore_unknown_options": True})  # "doctor --gpu" is a name
    def schema(
        command: Annotated[
            list[str] | None, typer.Argument(help="The command, for example: runs show. Default: all.")
        ] = None,
    ) -> None:
        """Print the JSON schema of a command's --json answer, or of all by command."""
        from agentforge.schema import UsageError

        from .._answer_schema import answer_schema
        from ..answers import ANSWERS

        name = " ".join(command or ())
        if name and name not in ANSWERS:
            raise UsageError(f"no answer of {name!r} has a schema; choose one of: {', '.join(ANSWERS)}")
        _print.as_json(answer_schema(name) if name else {key: answer_schema(key) for key in ANSWERS})
