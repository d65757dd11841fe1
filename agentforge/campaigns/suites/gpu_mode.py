"""GPU MODE's reference kernels: folders with `task.yml` and `reference.py`, such as `pmpp_v2/vectoradd_py`.

`generate_input` makes the data of a test or a benchmark, `ref_kernel` computes the answer. Both become one
source in KernelBench's convention; without a GPU, "cuda" in them is read as the CPU. Their checker and their
ranking are in `agentforge.campaigns.native`.

Reference: https://github.com/gpu-mode/reference-kernels, https://github.com/gpu-mode/kernelbot.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from agentforge.schema import NOT_PYTHON, SuiteProblem, UsageError

from ..native.ranking import RANKINGS
from ._base import (
    FolderSuite,
    Selection,
    Task,
    generated_problem,
    no_levels,
    other_hardware,
    read_problem,
    read_tasks,
    suite_folder,
)
from ._below import ONLY_TENSORS, source_of_all, with_whole

_NEEDED = {"ref_kernel", "generate_input"}
_KINDS = ("tests", "benchmarks")
_NATIVE = ("gpus", "test_timeout", "benchmark_timeout", "ranked_timeout")
_CHECKER = re.compile(r"^(?:def )?check_implementation\b", re.MULTILINE)
_CUDA = re.compile(r"""(['"])cuda(?::0)?\1""")
_FUTURE = re.compile(r"^from __future__ import .*$", re.MULTILINE)

_ABOVE = '''"""{name} of GPU MODE's reference kernels, in one file."""

import torch

_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
'''
_BELOW = '''

# ---- KernelBench's convention around `ref_kernel` and `generate_input`: written by AgentForge ----
from torch.utils import _pytree

_SPEC = {spec!r}


def _arguments():
    """Data of this workload; the seed comes from torch's own generator, so that each draw is another one."""
    spec = dict(_SPEC)
    if "seed" in spec:
        # No larger than those of the tasks: sort_py adds it to its data, whose digits a larger one cuts off.
        spec["seed"] = int(torch.randint(0, 1 << 17, ()))
    return (generate_input(**spec),)


{theirs}

def get_init_inputs():
    return []

'''
_THEIRS = """class _Theirs(torch.nn.Module):
    def forward(self, data):
        return {function}(data)
"""
_VERDICT = '''

def native_check(model, tensors, output):
    """What the task's own checker says of an output for these inputs."""
    return check_implementation(*model._bound(tensors), output)
'''

_VERDICT_OF_ALL = '''

_single_check = native_check


def native_check(model, tensors, output):
    """The same for the workload that a call names."""
    workload, *given = tensors
    return _single_check(model.of[workload], given, output)
'''

_NEW = '''

class ModelNew(Model):
    """The submission."""
'''
_SUBMITTED = """class _Theirs(torch.nn.Module):
    def forward(self, data):
        *given, memory = data
        memory = torch.empty_like(memory) if isinstance(memory, torch.Tensor) else memory
        return custom_kernel((*given, memory))
"""
"""Of a task whose data ends with memory for the answer, which its reference leaves alone. The reference makes
its answer in each call, and so does the submission."""


class GpuMode(FolderSuite):
    """A task's tests are a problem, its benchmarks another one, and so is each of them, `TASK/tests/1`."""

    name = "gpu-mode"
    form = "gpu-mode:DIR"
    packages: tuple[str, ...] = ("einops", "triton")

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        root = suite_folder(self._folder)
        files = sorted(root.rglob("task.yml"))
        if not files:
            raise UsageError(f"{root} has no folder with a task.yml: name the folder of the tasks")
        yield from read_tasks((_named(path, root) for path in files), root)


def _named(path: Path, root: Path) -> Task:
    place, group = path.parent.relative_to(root), path.parent.parent.name
    name = str(place) if place.parts else root.name
    return name, group, partial(_task, path, name, group)


def submission_source(task: Path, problem: SuiteProblem, submission: Path) -> str:
    """A solution in KernelBench's convention: the file's `custom_kernel` on a problem of a task.

    Args:
        task: `task.yml`.

    Raises:
        UsageError: a file cannot be read or is not Python.
    """
    text = _flat(task, _content(task), problem.id, submission)
    theirs = _SUBMITTED if _ends_with_memory(text) else _THEIRS.format(function="custom_kernel")
    return text + _BELOW.format(spec=problem.native["spec"], theirs=theirs) + ONLY_TENSORS + _NEW


def _ends_with_memory(text: str) -> bool:
    """Whether `ref_kernel` unpacks its data, and neither reads nor writes to the last part before it gives
    that name to something else."""
    functions = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == "ref_kernel")
    nodes = [node for function in functions for node in ast.walk(function)]
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[*_, ast.Name(id=last)])], value=ast.Name()):
                later = (n for n in nodes if isinstance(n, ast.Name) and n.id == last)
                uses = [(n.lineno, isinstance(n.ctx, ast.Store)) for n in later if n.lineno > node.lineno]
                return last != "_" and min(uses, default=(0, True))[1]
    return False


def _content(path: Path) -> dict[str, Any]:
    """Of `task.yml`."""
    try:
        task = yaml.safe_load(read_problem(path))
    except (yaml.YAMLError, AttributeError, LookupError, RecursionError, ValueError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"{path} is not YAML ({why}): correct it") from error
    if not isinstance(task, dict) or not any(task.get(kind) for kind in _KINDS):
        raise UsageError(f"{path} has no tests and no benchmarks: add some or leave the folder out")
    for kind in _KINDS:
        if not isinstance(task.get(kind) or [], list):
            raise UsageError(f"{path}, {kind} is no list: correct it")
    return task


def _task(path: Path, name: str, group: str) -> Iterator[SuiteProblem]:
    task = _content(path)
    reason, text = _unsupported(task), ""
    if not reason:
        text = _flat(path, task, name)
        missing = _NEEDED - {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
        reason = f"its reference has no function {min(missing)}" if missing else other_hardware(text)
    checked = bool(_CHECKER.search(text))
    native = {"ranking_by": _ranking(path, task), **{key: task[key] for key in _NATIVE if key in task}}
    native |= {"checker": True} if checked else {}
    below = ONLY_TENSORS + _VERDICT if checked else ONLY_TENSORS
    for kind in _KINDS:
        specs = [_spec(said, f"{path}, {kind} {n}") for n, said in enumerate(task.get(kind) or [], 1)]
        parts = []
        for number, spec in enumerate(specs, 1):
            several = f"{name}/{kind}" if len(specs) > 1 else ""
            around = _BELOW.format(spec=spec, theirs=_THEIRS.format(function="ref_kernel"))
            parts.append(
                generated_problem(
                    f"{name}/{kind}/{number}" if several else f"{name}/{kind}",
                    "" if reason else text + around + below,
                    group=group,
                    definition=several,
                    native={**native, "kind": kind, "spec": spec, "number": number, "of": len(specs)},
                    unsupported=reason,
                )
            )
        verdict = _VERDICT_OF_ALL if checked else ""
        yield from with_whole(parts, partial(_whole, parts, specs, verdict))


def _whole(parts: Sequence[SuiteProblem], specs: Sequence[Mapping[str, Any]], verdict: str) -> str:
    return source_of_all(parts[0].source, "_SPEC", specs) + verdict


def _spec(said: Any, where: str) -> dict[str, Any]:
    """Arguments of `generate_input`."""
    if not isinstance(said, dict):
        raise UsageError(f"{where} is no mapping: correct it")
    # kernelbot writes a line of text for a task's eval.py, which reads True and False as strings.
    return {key: str(value) if isinstance(value, bool) else value for key, value in said.items()}


def _ranking(path: Path, task: Mapping[str, Any]) -> str:
    """How the task makes one figure of its benchmarks; GPU MODE's own default is the last one."""
    found = task.get("ranking_by", "last")
    if found not in RANKINGS:
        raise UsageError(f"{path} ranks by {found!r}: write one of {', '.join(RANKINGS)}")
    return str(found)


def _unsupported(task: Mapping[str, Any]) -> str:
    if task.get("multi_gpu"):
        return "it needs several GPUs"
    return "" if task.get("lang", "py") == "py" else f"its submissions are in {task['lang']}, not in Python"


def _flat(path: Path, task: Mapping[str, Any], name: str, submission: Path | None = None) -> str:
    """The task's own modules one below the other, the reference last, and a submission below it.

    Raises:
        UsageError: a file is missing or is not Python.
    """
    try:
        places = {Path(f["name"]).stem: path.parent / f["source"] for f in task["files"]}
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} has no list of files with name and source: add it") from error
    if "reference" not in places:
        raise UsageError(f"{path} names no reference.py among its files: add it")
    modules = [m for m in places if m not in ("submission", "eval", "reference")]
    files = [*(places[m] for m in (*modules, "reference")), *([submission] if submission else [])]
    texts = [_module(file, frozenset((*modules, "reference"))) for file in files]
    future = "".join(f"{line}\n" for line in dict.fromkeys(_FUTURE.findall("\n".join(texts))))
    above = _ABOVE.format(name=name.replace("\\", "/"))
    if future:
        above = above.replace("import torch", f"{future}\nimport torch", 1)
    return above + "\n\n".join(_FUTURE.sub("", text) for text in texts)


def _module(path: Path, flat: frozenset[str]) -> str:
    """One module without its imports of the others."""
    text = read_problem(path)
    try:
        body = ast.parse(text).body
    except NOT_PYTHON as error:
        why = str(error) or type(error).__name__
        raise UsageError(f"{path} is not Python ({why}): correct it") from error
    lines = text.splitlines()
    for node in body:
        begin, end = node.lineno - 1, node.end_lineno or node.lineno
        if isinstance(node, ast.ImportFrom) and node.module in flat:
            lines[begin:end] = [""] * (end - begin)
        elif isinstance(node, ast.FunctionDef) and node.name == "generate_input":
            # Memory without values would be another input on each machine.
            lines[begin:end] = [line.replace("torch.empty", "torch.zeros") for line in lines[begin:end]]
    return _CUDA.sub("_DEVICE", "\n".join(lines)).replace(".cuda()", ".to(_DEVICE)")
