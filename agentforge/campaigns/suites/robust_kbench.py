"""robust-kbench: folders with `func_forward.py` or `func_backward.py`, each with a file of configurations.

A configuration gives arguments of the constructor and of `get_inputs`; each one is a workload. If constructor
arguments differ, the problem of all workloads has a model for each. The gradients are part of the contract of
a backward task: the referee compares them.

Reference: Lange et al., robust-kbench (2025), https://github.com/SakanaAI/robust-kbench.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from agentforge.schema import SuiteProblem, UsageError

from ._base import (
    FolderSuite,
    Selection,
    Task,
    generated_problem,
    no_levels,
    read_problem,
    read_tasks,
    suite_folder,
)
from ._below import OWN_MODEL, source_of_all, with_whole
from ._trace import Json, read_json

_DIRECTIONS = ("forward", "backward")
_PARTS = ("init", "input", "shared")
_BELOW = """

# ---- One configuration in KernelBench's convention: written by AgentForge ----
import torch as _torch

differentiable = {differentiable}
_their_inputs = get_inputs
{line}

def get_init_inputs():
    return {init}


def get_inputs():
    drawn = _their_inputs(**{inputs})
    return [value.detach() if isinstance(value, _torch.Tensor) else value for value in drawn]
"""


class RobustKBench(FolderSuite):
    """Each task and direction is a problem, and so is each of its configurations, `layernorm/backward/1`."""

    name = "robust-kbench"
    form = "robust-kbench:DIR"
    packages: tuple[str, ...] = ()

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        root = suite_folder(self._folder)
        root = root / "tasks" if (root / "tasks").is_dir() else root
        folders = sorted({path.parent for path in root.rglob("func_*.py")})
        if not folders:
            raise UsageError(f"{root} has no folder with a func_forward.py: name the folder of the tasks")
        yield from read_tasks((task for folder in folders for task in _tasks(folder, root)), root)


def _tasks(folder: Path, root: Path) -> Iterator[Task]:
    """Of one folder."""
    place = folder.relative_to(root)
    group = "" if place.parent == Path() else str(place.parent)
    for direction in _DIRECTIONS:
        path = folder / f"func_{direction}.py"
        if path.is_file():
            name = f"{place if place.parts else root.name}/{direction}"
            yield name, group, partial(_task, path, name, direction, group)


def _task(path: Path, name: str, direction: str, group: str) -> Iterator[SuiteProblem]:
    listed = path.with_name(f"config_{direction}.json")
    text = read_problem(path)
    found = _configurations(read_json(listed), listed) if listed.is_file() else []
    if not found:
        missing = f"its configurations, {listed.name}, are missing"
        yield generated_problem(name, "", group=group, unsupported=missing)
        return
    several = name if len(found) > 1 else ""
    below = partial(_BELOW.format, differentiable=direction == "backward")
    parts = [
        generated_problem(
            f"{name}/{number}" if several else name,
            text + below(line="", init=repr(init), inputs=repr(inputs)),
            group=group,
            definition=several,
            native={"init": init, "inputs": inputs, "direction": direction},
        )
        for number, (init, inputs) in enumerate(found, 1)
    ]
    one_model = all(init == found[0][0] for init, _ in found)
    theirs = text if one_model else OWN_MODEL.sub("_Theirs", text) + "\n\nModel = _Theirs\n"
    single = theirs + below(line=f"_CALL = {found[0]!r}\n", init="_CALL[0]", inputs="_CALL[1]")
    yield from with_whole(parts, lambda: source_of_all(single, "_CALL", found, one_model=one_model))


def _configurations(config: Json, path: Path) -> list[tuple[Json, Json]]:
    """Arguments of the constructor and of the inputs: the single configuration, then the others."""
    found: list[tuple[Json, Json]] = []
    for kind in ("single", "multi"):
        parts: list[Any] = [config.get(f"{kind}_{part}_configs", [{}]) for part in _PARTS]
        if not all(isinstance(part, list) and all(isinstance(c, dict) for c in part) for part in parts):
            raise UsageError(f"{path} has a {kind} configuration that is no list of objects: correct it")
        if found and not any(any(part) for part in parts):
            continue  # the same sizes again, by their defaults
        for init, inputs, shared in product(*parts):
            both = ({**init, **shared}, {**inputs, **shared})
            if both not in found:
                found.append(both)
    return found
