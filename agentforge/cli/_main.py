"""`main`: the commands, and one clear sentence for whatever goes wrong."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from . import doctor, kb, mcp, optimize, profile, runs, verify, version

OK = 0
AGAINST = 1
"""A verdict against the candidate."""
USAGE = 2
"""What was asked for cannot be done, or the machine lacks something."""
HARNESS = 3
"""The referee itself failed."""
INTERRUPTED = 130
"""Ctrl-C, as shells count it."""


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="agentforge",
        help="Agents write, referee and stitch fast kernels into PyTorch models.",
        no_args_is_help=True,
        rich_markup_mode=None,  # rich costs 0.1 s, which --help need not pay
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(
        debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    ) -> None:
        pass

    for command in (optimize, profile, verify, runs, kb, mcp, doctor, version):
        command.register(app)
    return app


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with one of the codes above."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = build()(arguments, prog_name="agentforge", standalone_mode=False)
    except BaseException as error:
        if "--debug" in arguments and not isinstance(error, SystemExit):
            raise
        code, message = explain(error)
        if message:
            _say(message, code, as_json="--json" in arguments, shown=getattr(error, "shown", ""))
    sys.exit(code if isinstance(code, int) else OK)


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence for an exception; an unexpected one asks for `--debug`."""
    from agentforge.schema import AgentForgeError, HarnessError

    if isinstance(error, SystemExit):
        return (error.code if isinstance(error.code, int) else OK), ""
    if isinstance(error, AgentForgeError):
        return (HARNESS if isinstance(error, HarnessError) else USAGE), _one_line(str(error))
    if hasattr(error, "format_message"):  # typer's own: unknown option, missing argument, bad value
        message = str(error.format_message())
        return USAGE, message if message.startswith("Usage:") else f"{_one_line(message)} (see --help)"
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, "interrupted"
    if isinstance(error, BrokenPipeError):
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - nobody reads what is left to flush
        return OK, ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" ({error.filename})" if error.filename else ""
        return USAGE, f"the disk is full{where}: free some space and run it again; what was computed is kept"
    if isinstance(error, OSError):
        return USAGE, _one_line(f"{error.strerror or error}: {error.filename or 'the operating system'}")
    if isinstance(error, MemoryError):
        return USAGE, "out of memory: use a smaller input, or a machine with more memory"
    return HARNESS, f"internal error, {type(error).__name__}: {_one_line(str(error))}; --debug shows where"


def _say(message: str, code: int, *, as_json: bool, shown: str) -> None:
    if as_json:
        print(json.dumps({"error": message, "exit_code": code, **({"shown": shown} if shown else {})}))
    else:
        print(f"agentforge: {message}", *filter(None, [shown]), sep="\n", file=sys.stderr)


def _one_line(text: str) -> str:
    return " ".join(text.split())
