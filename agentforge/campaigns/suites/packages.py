"""Packages that a problem or a solution imports and this machine lacks, found without running either."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from agentforge.languages import runtime_files
from agentforge.problems.own_modules import imported_heads
from agentforge.schema import NOT_PYTHON, MissingPackageError, Solution, SuiteProblem, pip_install

from ._base import suites

_EXTRAS = {"transformers": "hf", "triton": "gpu"}
"""Extras that bring what the extra `suites` does not."""


def check_packages(problem: SuiteProblem, suite: str, campaign: str, folder: Path) -> None:
    """Refuse a problem whose packages are missing.

    Args:
        suite: the campaign's suite, `NAME:PLACE`; an extra brings each package that it names.
        campaign: its name.
        folder: of the problem's file, which may have modules that the problem imports.

    Raises:
        MissingPackageError: a package is not installed.
    """
    for name in _imported(problem.source):
        if (folder / f"{name}.py").is_file() or (folder / name).is_dir() or _installed(name):
            continue
        kind, _, place = suite.partition(":")
        known = suites.create(kind, place).packages if kind in suites.names() else ()
        install = pip_install(_EXTRAS.get(name, "suites")) if name in known else f"pip install {name}"
        raise MissingPackageError(
            f"{problem.id} imports {name}, which is not installed: run {install}, then "
            f"agentforge campaign retry {campaign} --failed"
        )


def missing_package(solution: Solution) -> str:
    """The first package that a solution needs and this machine lacks; empty if there is none."""
    paths = [PurePosixPath(path) for path in runtime_files(solution.spec.language)]
    paths += [PurePosixPath(file.path) for file in solution.sources]
    own = {name for path in paths for name in (path.stem, path.parts[0])}
    python = (file.content for file in solution.sources if file.path.endswith(".py"))
    needed = (name for content in python for name in _imported(content))
    return next((name for name in needed if name not in own and not _installed(name)), "")


def _imported(source: str) -> list[str]:
    """Packages that the top level of a source imports; imports within `try` do not count."""
    try:
        body = ast.parse(source).body
    except NOT_PYTHON:
        return []  # the frontend says why
    return list(dict.fromkeys(imported_heads(body)))


def _installed(name: str) -> bool:
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False
