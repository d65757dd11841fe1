"""The `triton` language."""

from __future__ import annotations

import ast
import importlib.metadata
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from agentforge.languages._base import PRELUDE, Availability, BuildResult, CommandRunner
from agentforge.languages.occupancy import target_limits
from agentforge.languages.python import write_checked
from agentforge.schema import Diagnostic, MachineError, Solution, UsageError

from .ahead import AheadOfTime
from .launches import Launch, parse_launches

TARGETS = ("sm_80", "sm_90", "sm_100")
"""What is compiled for where a solution names no target."""
DECLARED = "AHEAD_OF_TIME"
"""Module-level literal by which a solution may say how it launches its kernels: a list of `Launch`es."""
_UNTIMED = (
    "its Triton kernels ran in Triton's interpreter, as there is no GPU here: they are right or wrong, and "
    "nothing is known of their speed"
)
_INSTALL = "install it with: pip install 'agentforge[gpu]'"
_TARGET_FLAG = "--target="
_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from agentforge.languages.triton.{module} import install, recorder

install()
calls, launches = recorder.calls, recorder.launches
'''


def triton_version() -> str:
    """Version of the installed Triton; empty where there is none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


class Triton:
    """`@triton.jit` kernels in Python files. `spec.flags` may name targets: `--target=sm_90`."""

    name = "triton"

    def available(self) -> Availability:
        version = triton_version()
        if version:
            return Availability(True, f"Triton {version}")
        return Availability(False, f"Triton is not installed; {_INSTALL}")

    def build(
        self,
        solution: Solution,
        folder: Path,
        *,
        cache: Path,
        run: CommandRunner,
        timeout_s: float,
        device: str = "cpu",
    ) -> BuildResult:
        """See `Language.build`.

        Args:
            solution: what is built.
            folder: where.
            cache: of compiled launches.
            run: starts the compiler.
            timeout_s: for all of it.
            device: kind of device that will run it; on `cpu` kernels go to Triton's interpreter.
        """
        start = time.monotonic()
        self._need_triton()
        diagnostics = write_checked(solution, folder)
        if diagnostics:
            return _result(False, start, diagnostics)
        module = "on_gpu" if device == "cuda" else "interpreted"
        place = folder / PurePosixPath(solution.entry_file).parent / PRELUDE
        place.write_text(_PRELUDE.format(module=module))
        launches, problems = declared_launches(solution)
        if problems:
            return _result(False, start, problems)
        result = self.compile_launched(
            solution, folder, [x.model_dump() for x in launches], cache=cache, run=run, timeout_s=timeout_s
        )
        return replace(result, untimed="" if device == "cuda" else _UNTIMED)

    def compile_launched(
        self,
        solution: Solution,
        folder: Path,
        launches: Sequence[Mapping[str, Any]],
        *,
        cache: Path,
        run: CommandRunner,
        timeout_s: float,
    ) -> BuildResult:
        """See `AheadOfTimeLanguage.compile_launched`."""
        start = time.monotonic()
        self._need_triton()
        try:
            targets = solution_targets(solution)
        except UsageError as error:
            return _result(False, start, [Diagnostic(message=str(error))])
        ahead = AheadOfTime(solution, folder, targets, cache, run, triton_version())
        outcome, cached = ahead.compile(parse_launches(launches), timeout_s)
        result = _result(outcome.ok, start, outcome.diagnostics)
        return BuildResult(
            ok=outcome.ok,
            seconds=result.seconds,
            cached=cached and bool(launches),
            timed_out=outcome.timed_out,
            diagnostics=outcome.diagnostics,
            resources=outcome.resources,
            log=result.log,
        )

    def _need_triton(self) -> None:
        if not triton_version():
            raise MachineError(f"Triton is not installed; {_INSTALL}")


def solution_targets(solution: Solution) -> tuple[str, ...]:
    """The targets that a solution names in its flags, or the usual ones.

    Raises:
        UsageError: an unknown target or flag.
    """
    named = []
    for flag in solution.spec.flags:
        if not flag.startswith(_TARGET_FLAG):
            raise UsageError(f"triton has no flag {flag!r}; it knows {_TARGET_FLAG}sm_90 and the like")
        named.append(target_limits(flag.removeprefix(_TARGET_FLAG)).name)
    return tuple(dict.fromkeys(named)) or TARGETS


def declared_launches(solution: Solution) -> tuple[list[Launch], list[Diagnostic]]:
    """The launches that the entry file declares in the literal `AHEAD_OF_TIME`, and what is wrong with it."""
    entry = solution.entry_file
    for node in ast.parse(solution.source(entry)).body:
        if not (isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [DECLARED]):
            continue
        try:
            found = ast.literal_eval(node.value)
        except ValueError:
            found = None
        launches = parse_launches(found) if isinstance(found, list) else []
        if not isinstance(found, list) or len(launches) < len(found):
            message = (
                f"{DECLARED} is a literal list of launches, each with kernel, types and constants; "
                "leave it out if they are not known"
            )
            return [], [Diagnostic(message=message, file=entry, line=node.lineno)]
        return launches, []
    return [], []


def _result(ok: bool, start: float, diagnostics: Sequence[Diagnostic]) -> BuildResult:
    log = "\n".join(f"{d.file}:{d.line}: {d.severity}: {d.message}" for d in diagnostics)
    return BuildResult(ok=ok, seconds=time.monotonic() - start, diagnostics=tuple(diagnostics), log=log)
