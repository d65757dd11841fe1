"""One entry for several workloads: a call runs the kernels for its shapes, or the reference.

A solution that was judged on one workload has kernels for its shapes, and the entry chooses by the shapes,
dtypes and numbers of a call. One that was judged on all workloads gets every call. Each has its own folder;
they share one copy of the run-time modules. Nothing of a solution or a task runs here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from agentforge.schema import Solution, content_hash
from agentforge.stitch.files import OPTIONAL

ENTRY_FILE = "agentforge_entry.py"
_RUNTIME = "runtime"
_RUNTIME_FILE = re.compile(r"agentforge_\w+(\.py|/.*)")
_REFERENCE = "reference/problem.py"

_COMMON = '''"""Runs the kernels that were verified for a call's shapes, and the reference for other shapes.

Written by AgentForge.
"""

import importlib.util
import sys
from pathlib import Path

import torch
from torch.utils import _pytree

_HERE = Path(__file__).resolve().parent
_REFERENCE = {reference!r}
_RUNTIME = _HERE / {runtime!r}
inf = float("inf")
_KERNELS = {{
{table}}}
"""File and class of the kernels for arguments: shape and dtype of a tensor, or another value."""
_MODELS = {{}}


def _module(file):
    """A module under a name of its own, because each folder has files of the same names."""
    name = "agentforge_{tag}_" + file.removesuffix(".py").replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _HERE / file)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _provide_runtimes():
    """Make the run-time modules importable; all kernels share one copy."""
    sys.path.insert(0, str(_RUNTIME))
    try:
        from agentforge_stitch.kernel import provide_runtimes
    finally:
        sys.path.remove(str(_RUNTIME))
    provide_runtimes(_RUNTIME)


def _model(place):
    if place not in _MODELS:
        file, kind = place
        if file != _REFERENCE:
            _provide_runtimes()
        with torch.random.fork_rng(range(torch.cuda.device_count())):  # it may draw inputs
            _MODELS[place] = getattr(_module(file), kind)().eval()
    return _MODELS[place]


def _call(place, values):
    """The kernels are for inference; a call with gradients runs the original forward."""
    wanted = torch.is_grad_enabled() and any(getattr(v, "requires_grad", False) for v in values)
    with torch.set_grad_enabled(wanted):
        return _model(place)(*values)


def _key(values):
    return tuple((tuple(v.shape), str(v.dtype)) if isinstance(v, torch.Tensor) else v for v in values)
'''

_RUN = '''

def run({names}):
    """Call the kernels for these shapes."""
    arguments = ({names},)
    place, *_ = _KERNELS.get(_key(arguments)) or [{otherwise}]
    return _call(place, arguments)
'''

_CUSTOM_KERNEL = '''

def custom_kernel(data):
    """Call the kernels for these tensors and numbers; those for several workloads take a workload's name."""
    leaves, tree = _pytree.tree_flatten((data,))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    given = _key(tensors)
    for name in ((), *(key[:1] for key in _KERNELS if key[1:] == given and isinstance(key[0], str))):
        for place in _KERNELS.get((*name, *given), ()):
            model = _model(place).of[name[0]] if name else _model(place)
            constants = [torch.Tensor if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            if model._tree == tree and model._leaves == constants:
                return _call(place, [*name, *tensors])
    return _module(_REFERENCE).ref_kernel(data)
'''

Key = tuple[Any, ...]


@dataclass(frozen=True)
class ShapeKernels:
    """A stitched solution and the call that its kernels are for."""

    solution: Solution
    keys: tuple[Key, ...]
    """For each call and argument, `(shape, dtype)` of a tensor, or another value."""
    whole: bool = False
    """It was judged on all workloads of its definition."""


def shape_kernels(solution: Solution, *, whole: bool = False) -> ShapeKernels | None:
    """A stitched solution with the calls that its kernels are for; None if it is for one workload, and they
    are not for that whole call.

    Args:
        whole: it was judged on all workloads of its definition.
    """
    plan = next((json.loads(file.content) for file in solution.sources if file.path == "plan.json"), None)
    calls = [unit["signature"]["leaves"] for unit in plan["units"] if not unit["path"]] if plan else []
    keys = tuple(
        tuple(_value(leaf) for leaf in leaves)
        for leaves in calls  # torch.compile may have no description of the call
        if leaves and [leaf["path"] for leaf in leaves] == [[0, number] for number in range(len(leaves))]
    )
    return ShapeKernels(solution, keys, whole) if whole or len(keys) == len(calls) == 1 else None


def _value(leaf: Mapping[str, Any]) -> Any:
    tensor = leaf.get("tensor")
    return leaf["constant"] if tensor is None else (tuple(tensor["shape"]), f"torch.{tensor['dtype']}")


def entry_files(
    reference: str, found: Sequence[ShapeKernels], *, names: Sequence[str] = ()
) -> dict[str, str]:
    """Texts by path: the entry, the reference, and a folder for each solution.

    Args:
        reference: source in KernelBench's convention.
        names: parameters of `run`; if there are none, the entry is GPU MODE's `custom_kernel(data)`.
    """
    solutions = [kernels.solution for kernels in found]
    # Solutions for the other suites may share a process, in which the first one's modules serve all.
    unused = set() if names else _unused(solutions)
    runtime = _runtime_files(solutions)
    files = {_REFERENCE: reference}
    files |= {f"{_RUNTIME}/{path}": text for path, text in runtime.items() if path not in unused}
    table, otherwise = dict[Key, list[tuple[str, str]]](), (_REFERENCE, "Model")
    for number, kernels in enumerate(found, 1):
        folder = f"workload_{number}"
        for file in kernels.solution.sources:
            if runtime.get(file.path) != file.content:  # another version's are kept: its loader warns
                files[f"{folder}/{file.path}"] = file.content
        place = f"{folder}/{kernels.solution.entry_file}", kernels.solution.entry_class
        for key in kernels.keys:
            if all(value == value for value in key):  # no call has a number that is none
                table.setdefault(key, []).append(place)
        if kernels.whole:
            otherwise = place
    below = _RUN.format(names=", ".join(names), otherwise=otherwise) if names else _CUSTOM_KERNEL
    common = _COMMON.format(
        reference=_REFERENCE,
        runtime=_RUNTIME,
        table="".join(f"    {key!r}: {places!r},\n" for key, places in table.items()),
        tag=content_hash(files, length=12),
    )
    return {ENTRY_FILE: common + below, **files}


def _runtime_files(solutions: Sequence[Solution]) -> dict[str, str]:
    """Texts of the solutions' run-time modules by path; those of the first one that has such a file."""
    files: dict[str, str] = {}
    for solution in solutions:
        for file in solution.sources:
            if _RUNTIME_FILE.fullmatch(file.path):
                files.setdefault(file.path, file.content)
    return files


def _unused(solutions: Sequence[Solution]) -> set[str]:
    """Run-time modules that none of the solutions imports; older ones import all of them."""
    texts = [(file.path, file.content) for solution in solutions for file in solution.sources]
    modes = "+".join(json.loads(text)["mode"] for path, text in texts if path == "plan.json").split("+")
    imported = {name for _, text in texts for name in re.findall(r"^from \.(\w+) import", text, re.M)}
    return {
        path for path, part in OPTIONAL.items() if part not in modes and PurePath(path).stem not in imported
    }
