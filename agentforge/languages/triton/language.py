"""The `triton` language."""

from __future__ import annotations

import ast
import importlib.metadata
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from agentforge.languages import occupancy
from agentforge.languages._base import PRELUDE, BuildResult, CommandRunner
from agentforge.languages.info import TRITON
from agentforge.languages.python.language import write_checked
from agentforge.registry import Availability
from agentforge.schema import NOT_PYTHON, Diagnostic, MachineError, Solution, UsageError, pip_install

from ..cuda.compile.pipeline import gpu_target
from .compile.ahead import AheadOfTime
from .launches import Launch, parse_launches

TARGETS = ("sm_80", "sm_90", "sm_100")
"""Targets if a solution names none and there is no GPU."""
DECLARED = "AHEAD_OF_TIME"
"""Module-level literal in which a solution may declare its kernel launches: a list of `Launch`es."""
_UNTIMED = (
    "its Triton kernels ran in Triton's interpreter because there is no GPU here: results are checked, "
    "their speed is unknown"
)
_INSTALL = f"run {pip_install('gpu')}"
_TARGET_FLAG = "--target="
_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from agentforge.languages.triton.{module} import install, recorder

install()
calls, launches = recorder.calls, recorder.launches
'''


def triton_version() -> str:
    """Version of the installed Triton; empty if there is none."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


class Triton:
    """`@triton.jit` kernels in Python files. `spec.flags` may name targets: `--target=sm_90`."""

    name = "triton"
    info = TRITON

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
            device: kind of device that will run it; for `cpu` Triton's interpreter is used.
        """
        start = time.monotonic()
        self._need_triton()
        diagnostics = write_checked(solution, folder)
        if diagnostics:
            return BuildResult(False, diagnostics=diagnostics).since(start)
        module = "on_gpu" if device == "cuda" else "interpreter.install"
        place = folder / PurePosixPath(solution.entry_file).parent / PRELUDE
        place.write_text(_PRELUDE.format(module=module))
        launches, problems = declared_launches(solution)
        if problems:
            return BuildResult(False, diagnostics=tuple(problems)).since(start)
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
            return BuildResult(False, diagnostics=(Diagnostic(message=str(error)),)).since(start)
        ahead = AheadOfTime(solution, folder, targets, cache, run, triton_version())
        return ahead.compile(parse_launches(launches), timeout_s).since(start)

    def _need_triton(self) -> None:
        if not triton_version():
            raise MachineError(f"Triton is not installed; {_INSTALL}")


def solution_targets(solution: Solution) -> tuple[str, ...]:
    """The targets that a solution names in its flags, else this machine's GPU, else the default ones.

    Raises:
        UsageError: an unknown target or flag.
    """
    named = []
    for flag in solution.spec.flags:
        if not flag.startswith(_TARGET_FLAG):
            raise UsageError(
                f"unknown flag {flag!r} of triton; it supports {_TARGET_FLAG}sm_90 and other targets"
            )
        named.append(occupancy.target_limits(flag.removeprefix(_TARGET_FLAG)).name)
    here = gpu_target()
    return tuple(dict.fromkeys(named)) or ((here,) if here in occupancy.TARGETS else TARGETS)


def declared_launches(solution: Solution) -> tuple[list[Launch], list[Diagnostic]]:
    """The launches declared in the entry file's literal `AHEAD_OF_TIME`, and the errors in it."""
    entry = solution.entry_file
    for node in ast.parse(solution.source(entry)).body:
        if not isinstance(node, ast.Assign) or [getattr(t, "id", "") for t in node.targets] != [DECLARED]:
            continue
        try:
            found = ast.literal_eval(node.value)
        except (TypeError, *NOT_PYTHON):
            found = None
        launches = parse_launches(found) if isinstance(found, list) else []
        if not isinstance(found, list) or len(launches) < len(found):
            message = (
                f"{DECLARED} must be a literal list of launches, each with kernel, types and constants; "
                "omit it if they are unknown"
            )
            return [], [Diagnostic(message=message, file=entry, line=node.lineno)]
        return launches, []
    return [], []
