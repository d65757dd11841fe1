"""Submissions to GPU MODE's leaderboards: Python files with `custom_kernel(data)`.

`--problems` names the folder of their task, with `task.yml`; without it, that is the place itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentforge.schema import UsageError

from ..suites import Selection
from ..suites.gpu_mode import GpuMode, submission_source
from ._base import Submission, read_text, text_file

_ENTRY = re.compile(r"^(?:def\s+custom_kernel\b|custom_kernel\s*=)", re.MULTILINE)


class GpuModeSubmissions:
    """Each file on each test and benchmark of the task."""

    name = "gpu-mode"
    form = "a file with custom_kernel, or a folder of them"

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return bool(_files(place))

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> Iterator[Submission]:
        """See `Layout`."""
        folder = problems or (place if place.is_dir() else place.parent)
        task, files = folder / "task.yml", _files(place)
        if not task.is_file():
            raise UsageError(f"{folder} has no task.yml: name the task's folder with --problems DIR")
        if not files:
            raise UsageError(f"{place} has no Python file with custom_kernel: name one")
        single = (p for p in GpuMode(str(folder)).problems(Selection()) if not p.workloads)
        for problem in single:
            for file in files:
                why, text = problem.unsupported, ""
                try:
                    text = "" if why else submission_source(task, problem, file)
                except UsageError as error:
                    why = str(error)
                yield Submission(
                    id=f"{problem.id}/{file.stem}",
                    problem=problem.id,
                    reference=text_file(scratch, "reference.py", problem.source) if problem.source else None,
                    solution=text_file(scratch, "model_new.py", text) if text else None,
                    unusable=why,
                )


def _files(place: Path) -> list[Path]:
    found = [place] if place.is_file() else sorted(place.glob("*.py"))
    return [path for path in found if path.suffix == ".py" and _is_submission(path)]


def _is_submission(path: Path) -> bool:
    try:
        return bool(_ENTRY.search(read_text(path)))
    except UsageError:
        return False
