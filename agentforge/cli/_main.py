"""`main`: the commands, and one clear sentence for every error."""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, NoReturn

import typer

from agentforge.visible import shortened, visible

from . import _interrupt
from .commands import (
    audit,
    campaign,
    doctor,
    kb,
    mcp,
    optimize,
    profile,
    recheck,
    run_files,
    runs,
    schema,
    verify,
    version,
)

OK = 0
AGAINST = 1
"""The verdict is against the candidate."""
USAGE = 2
"""The request cannot be carried out, or the machine lacks something."""
HARNESS = 3
"""The referee itself failed."""
INTERRUPTED = _interrupt.INTERRUPTED
"""Ctrl-C, as shells report it."""
MOST_SHOWN = 700
"""Most characters of an error: an exception of the user's model may hold a whole tensor."""


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="agentforge",
        help="Make PyTorch models faster: agents write kernels, a referee verifies and times them.",
        no_args_is_help=True,
        rich_markup_mode=None,  # rich costs 0.1 s, and --help does not need it
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(
        debug: Annotated[
            bool, typer.Option("--debug", help="Show the traceback if there is an error.")
        ] = False,
        _: Annotated[
            bool,
            typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True),
        ] = False,
    ) -> None:
        pass

    for command in (
        optimize,
        profile,
        verify,
        runs,
        run_files,
        campaign,
        audit,
        recheck,
        kb,
        mcp,
        doctor,
        schema,
        version,
    ):
        command.register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        from agentforge._version import __version__

        print(f"agentforge {__version__}")
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with one of the codes above."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    if sys.platform != "linux":
        why = f"candidates run in a sandbox of Linux, and this is {sys.platform}: use Linux or a container"
        _say(why, USAGE, as_json="--json" in arguments, shown="")
        sys.exit(USAGE)
    if argv is None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # for letters that the locale lacks
                stream.reconfigure(errors="backslashreplace")
        _interrupt.install(lambda: _cut_short(as_json="--json" in arguments))
    try:
        _invoke(arguments)
        code = OK
    except typer.Exit as left:
        code = left.exit_code
    except BaseException as error:
        _interrupt.leave()
        code, message = explain(error)
        if message:
            if "--debug" in arguments and not hasattr(error, "format_message"):
                with suppress(OSError):
                    traceback.print_exception(error)
            shown, way_on = getattr(error, "shown", ""), getattr(error, "way_on", None)
            say = partial(_say, message, code, as_json="--json" in arguments, shown=shown, way_on=way_on)
            _interrupt.once(say) if code == INTERRUPTED else say()
    if hindrance := _flush():
        code = USAGE
        with suppress(OSError):
            print(f"agentforge: the output cannot be written ({hindrance})", file=sys.stderr)
    _interrupt.exit_code = code
    sys.exit(code)


def _cut_short(*, as_json: bool) -> None:
    """Say that the command is interrupted, before the process ends without flushing."""
    _interrupt.once(partial(_say, "interrupted", INTERRUPTED, as_json=as_json, shown=""))
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()


def _invoke(arguments: list[str]) -> None:
    """Carry out the command without `typer`'s own handling of errors.

    It takes an interrupt for a code that the command has chosen, and a reader that has gone for a failure.
    """
    command = typer.main.get_command(build())
    if "_AGENTFORGE_COMPLETE" in os.environ:  # a shell asks what fits; this answers and exits
        command([], prog_name="agentforge")
    with command.make_context("agentforge", [*arguments]) as context:  # it takes from the list
        command.invoke(context)


def _flush() -> str:
    """Write the rest, and say why that fails; a reader that has gone, as of `| head`, is no failure."""
    hindrance = ""
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)  # else Python fails on it at exit
            if not isinstance(error, BrokenPipeError):
                hindrance = error.strerror or str(error)
    return hindrance


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence for an exception; for an unexpected one the sentence names `--debug`."""
    from agentforge.schema import AgentForgeError, HarnessError

    if isinstance(error, SystemExit):
        if isinstance(error.code, str):  # as `sys.exit("...")` in a module that is imported
            return USAGE, _one_line(error.code)
        return error.code or OK, ""
    if isinstance(error, AgentForgeError):
        return (HARNESS if isinstance(error, HarnessError) else USAGE), _one_line(str(error))
    if hasattr(error, "format_message"):  # typer's own: unknown option, missing argument, bad value
        message = str(error.format_message())
        return USAGE, message if message.startswith("Usage:") else f"{_one_line(message)} (see --help)"
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, "interrupted"
    if isinstance(error, BrokenPipeError):
        return OK, ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" ({error.filename})" if error.filename else ""
        return USAGE, f"the disk is full{where}: free some space and run it again; finished work is kept"
    if isinstance(error, OSError):
        return USAGE, _one_line(f"{error.strerror or error}: {error.filename or 'the operating system'}")
    if isinstance(error, MemoryError):
        return USAGE, "out of memory: use a smaller input, or a machine with more memory"
    return (
        HARNESS,
        f"internal error, {type(error).__name__}: {_one_line(str(error))}; "
        "`agentforge --debug COMMAND` shows the traceback",
    )


def _say(
    message: str, code: int, *, as_json: bool, shown: str, way_on: Mapping[str, str] | None = None
) -> None:
    """Write an error; on stderr too if stdout is a file on a full disk.

    Args:
        way_on: `run`, and the command that continues it as `resume`, if there is one.
    """
    more = {**({"shown": shown} if shown else {}), **(way_on or {})}
    if as_json:
        try:
            print(json.dumps({"error": message, "exit_code": code, **more}))
        except BrokenPipeError:
            return
        except OSError:
            as_json = False
    if not as_json:
        with suppress(OSError):
            said = message if message.startswith("Usage:") else f"agentforge: {message}"
            resume = f"continue with: {way_on['resume']}" if way_on else ""
            print(said, *filter(None, [shown, resume]), sep="\n", file=sys.stderr)


def _one_line(text: str) -> str:
    return shortened(visible(" ".join(text.split())), MOST_SHOWN)
