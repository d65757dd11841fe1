"""KernelBench: `level1/19_ReLU.py` and others, in a clone of its repository or a folder of the same form, or
its data set in the cache of Hugging Face.

Reference: Ouyang et al., KernelBench (2025), https://github.com/ScalingIntelligence/KernelBench.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentforge.schema import MachineError, SuiteProblem, UsageError, pip_install

from ._base import FolderSuite, Selection, Task, file_problem, generated_problem, python_files, read_tasks

LEVELS = (1, 2, 3, 4)
CACHED = "hf"
"""Place that means the cache of Hugging Face; a folder of this name is `./hf`."""
_DATA = "datasets--ScalingIntelligence--KernelBench"
_PARTS = re.compile(r"-\d+-of-(\d+)")
_AGAIN = "download the data set again"


class KernelBench(FolderSuite):
    """Levels that are folders `levelN`, in the folder itself or in its folder `KernelBench`; for the place
    `hf`, files `data/level_N-*.parquet` of the newest snapshot in Hugging Face's cache.
    """

    name = "kernelbench"
    form = "kernelbench:DIR"
    packages: tuple[str, ...] = ("einops", "transformers")

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._place = place

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        if self._place == CACHED:
            yield from _cached(selection)
            return
        folder = self._folder
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder: clone KernelBench and name its folder")
        root = next((f for f in (folder, folder / "KernelBench") if list(f.glob("level[1-4]"))), None)
        if root is None:
            raise UsageError(f"{folder} has no folder level1 to level4: name the folder that contains them")
        there = tuple(level for level in LEVELS if (root / f"level{level}").is_dir())
        tasks: list[Task] = []
        for level in selection.levels or there:
            if level not in there:
                raise UsageError(f"{root} has no level {level}; its levels are: {', '.join(map(str, there))}")
            tasks += (_task(path, f"level{level}") for path in python_files(root / f"level{level}"))
        yield from read_tasks(tasks, root)


def _task(path: Path, group: str) -> Task:
    name = f"{group}/{path.stem}"
    return name, group, lambda: [file_problem(path, identifier=name, group=group)]


def _cached(selection: Selection) -> Iterator[SuiteProblem]:
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    snapshots = [
        f for f in (cache / _DATA / "snapshots").glob("*") if list(f.glob("data/level_[1-4]-*.parquet"))
    ]
    if not snapshots:
        raise UsageError(
            f"{cache} has no data set of KernelBench: run {pip_install('hf,suites')}, then "
            "`hf download --repo-type dataset ScalingIntelligence/KernelBench`, or name a folder"
        )
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MachineError(f"kernelbench:hf needs pyarrow: run {pip_install('suites')}") from error
    data = max(snapshots, key=lambda folder: folder.stat().st_mtime) / "data"
    files = {level: sorted(data.glob(f"level_{level}-*.parquet")) for level in LEVELS}
    there = [level for level in LEVELS if files[level]]
    for level in selection.levels:
        if level not in there:
            raise UsageError(f"{data} has no level {level}: {_AGAIN}")
    if not selection.levels and len(there) <= there[-1] - there[0]:
        raise UsageError(
            f"{data} has the levels {', '.join(map(str, there))} alone: name those that you want with "
            f"--levels, or {_AGAIN}"
        )
    for level in selection.levels or there:
        found = [row for file in _whole(files[level]) for row in _problems(parquet, file, f"level{level}")]
        yield from (problem for _, problem in sorted(found, key=lambda row: row[0]))


def _whole(files: list[Path]) -> list[Path]:
    """The files of one level.

    Raises:
        UsageError: some of them are missing, by the number in their names.
    """
    parts = _PARTS.search(files[0].name)
    if parts and len(files) < int(parts[1]):
        raise UsageError(f"{files[0]} is one of {int(parts[1])} files, and others are missing: {_AGAIN}")
    return files


def _problems(parquet: Any, file: Path, group: str) -> list[tuple[int, SuiteProblem]]:
    """The problems of one file with their numbers.

    Raises:
        UsageError: it cannot be read, or is of another form.
    """
    try:
        return [
            (int(row["problem_id"]), generated_problem(f"{group}/{row['name']}", row["code"], group=group))
            for row in parquet.read_table(file).to_pylist()
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UsageError(f"{file} is no level of KernelBench ({why}): {_AGAIN}") from error
