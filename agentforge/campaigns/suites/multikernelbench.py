"""MultiKernelBench: `reference/CATEGORY/*.py` in KernelBench's convention.

Files with `get_input_groups()` read their cases from a JSON file beside them; each case is a workload.

Reference: https://github.com/wzzll123/MultiKernelBench.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentforge.schema import SuiteProblem, UsageError

from ._base import (
    FolderSuite,
    Selection,
    file_problem,
    generated_problem,
    no_levels,
    other_hardware,
    python_files,
    read_problem,
    read_tasks,
    suite_folder,
)
from ._below import ONLY_TENSORS, OWN_MODEL, source_of_all, with_whole

_BELOW = """

# ---- One case in KernelBench's convention: written by AgentForge ----
import io as _io

import torch
from torch.utils import _pytree

{line}def open(*_, **__):
    return _io.StringIO({case})


def _arguments():
    return tuple(get_input_groups()[0])

"""


class MultiKernelBench(FolderSuite):
    """Each file of each category is a problem, and so is each of its cases."""

    name = "multikernelbench"
    form = "multikernelbench:DIR"
    packages: tuple[str, ...] = ("einops",)

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        root = suite_folder(self._folder)
        root = root / "reference" if (root / "reference").is_dir() else root
        categories = sorted(folder for folder in root.iterdir() if list(folder.glob("[!_]*.py")))
        if not categories:
            raise UsageError(f"{root} has no folder of Python files: name the folder of the categories")
        tasks = (
            (f"{category.name}/{path.stem}", category.name, partial(_problems, path, category.name))
            for category in categories
            for path in python_files(category)
        )
        yield from read_tasks(tasks, root)


def _problems(path: Path, category: str) -> Iterator[SuiteProblem]:
    name, text = f"{category}/{path.stem}", read_problem(path)
    elsewhere = other_hardware(text)
    if "get_input_groups" not in text and not elsewhere:
        yield file_problem(path, identifier=name, group=category)
        return
    if "get_input_groups" not in text:
        yield generated_problem(name, "", group=category, unsupported=elsewhere)
        return
    listed = path.with_suffix(".json")
    lines = read_problem(listed).splitlines() if listed.is_file() else []
    cases = [line for line in lines if line.strip()]
    if not cases:
        missing = f"its cases, {listed.name}, are missing"
        yield generated_problem(name, "", group=category, unsupported=missing)
        return
    several, theirs = name if len(cases) > 1 else "", OWN_MODEL.sub("_Theirs", text)
    parts = [
        generated_problem(
            f"{name}/{number}" if several else name,
            theirs + _BELOW.format(line="", case=repr(case)) + ONLY_TENSORS,
            group=category,
            definition=several,
            native={"case": number},
            unsupported=elsewhere,
        )
        for number, case in enumerate(cases, 1)
    ]
    below = _BELOW.format(line=f"_CASE = {cases[0]!r}\n\n\n", case="_CASE")
    yield from with_whole(parts, lambda: source_of_all(theirs + below + ONLY_TENSORS, "_CASE", cases))
