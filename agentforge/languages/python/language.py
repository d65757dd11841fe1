"""The `python` language: torch or any Python; a build is a syntax check."""

from __future__ import annotations

import ast
import time
import warnings
from pathlib import Path

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.info import PYTHON
from agentforge.registry import Availability
from agentforge.schema import Diagnostic, Solution, SourceFile

from ..solutions.folder import write_or_explain
from .extensions import builds_at_import, write_prelude


def check_syntax(file: SourceFile) -> Diagnostic | None:
    """The syntax error of a Python file, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(file.content, file.path)
    except SyntaxError as error:
        return Diagnostic(message=error.msg, file=file.path, line=error.lineno or 0, column=error.offset or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return Diagnostic(message=f"cannot be parsed: {str(error) or type(error).__name__}", file=file.path)
    return None


def write_checked(solution: Solution, folder: Path) -> tuple[Diagnostic, ...]:
    """Write a solution; report files that cannot be written and Python files that do not parse."""
    python = (file for file in solution.sources if file.path.endswith(".py"))
    found = (write_or_explain(solution, folder), *(check_syntax(file) for file in python))
    wrong = tuple(d for d in found if d is not None)
    if not wrong and builds_at_import(solution):
        write_prelude(solution, folder)
    return wrong


class Python:
    """Python sources, written unchanged; nothing is imported or run."""

    name = "python"
    info = PYTHON

    def available(self) -> Availability:
        import platform

        return Availability(True, f"Python {platform.python_version()}")

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
        start = time.monotonic()
        wrong = write_checked(solution, folder)
        return BuildResult(not wrong, diagnostics=wrong).since(start)
