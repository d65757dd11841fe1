"""A folder of model files in KernelBench's convention."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentforge.schema import SuiteProblem

from ._base import FolderSuite, Selection, Task, file_problem, no_levels, python_files, read_tasks


class ModelFolder(FolderSuite):
    """Each Python file of a folder is a problem; files that begin with `_` are not."""

    name = "folder"
    form = "folder:DIR"
    packages: tuple[str, ...] = ()

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        yield from read_tasks(map(_task, python_files(self._folder)), self._folder)


def _task(path: Path) -> Task:
    return path.stem, "", lambda: [file_problem(path, identifier=path.stem)]
