"""Workloads of a foreign definition as a source in KernelBench's convention.

Covers the FlashInfer Trace schema and what SOL-ExecBench adds to it: axes that are expressions, inputs that a
function of the reference makes, and tensors in safetensors files.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..definition import DType
from ..errors import NOT_PYTHON, UsageError
from .sizes import axis_sizes

_AROUND = '''

# ---- KernelBench's convention around the reference's `run`: written by AgentForge ----
import torch as _torch


class Model(_torch.nn.Module):
    """The reference's `run` as a module."""

    def forward(self, {names}):
        return run({names})


def get_init_inputs():
    return []


{inputs}'''
_LOAD = """

def _stored(path, key):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.get_tensor(key)
"""
_RANGES = {DType.INT8: (-128, 128), DType.BOOL: (0, 2)}
_RANGE = (-1024, 1024)
"""Of random integers, as SOL-ExecBench and FlashInfer-Bench draw them."""
_POINTER = b"version https://git-lfs"
"""Git LFS begins a file that it has not fetched with this."""

NamedInput = Callable[[str, str, DType, Sequence[int]], str]
"""An expression for a random input, in which `_torch` is torch, from its name, its description, its type and
its shape; "" if these say nothing of its values."""


class CannotRunError(UsageError):
    """A workload that is well formed and cannot run here; the message says why."""


def workload_source(
    definition: Mapping[str, Any],
    workloads: Sequence[Mapping[str, Any]],
    roots: Sequence[Path],
    named: NamedInput,
) -> tuple[str, dict[str, str]]:
    """The reference, with `Model`, `get_init_inputs()` and `get_inputs()` of these workloads below it.

    Several are listed as `workloads`, "1" and so on, and `get_inputs` takes one of them. An input that a
    workload leaves out is random.

    Returns:
        The text, and the places on this machine that it has of safetensors files, by the workloads' paths.

    Args:
        roots: folders that paths of safetensors files may be relative to.
        named: how the suite draws inputs whose names say what they hold.

    Raises:
        CannotRunError: a dtype that has no arithmetic here, a random scalar, a file that is missing or that
            Git LFS has not fetched.
        UsageError: a field is missing or does not fit.
    """
    name = f"definition {definition.get('name', '')}".strip()
    try:
        return _source(definition, workloads, roots, named)
    except KeyError as error:
        raise UsageError(f"{name}: {error} is missing: correct the suite") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{name} does not follow its schema ({error}): correct the suite") from error


def _source(
    definition: Mapping[str, Any],
    workloads: Sequence[Mapping[str, Any]],
    roots: Sequence[Path],
    named: NamedInput,
) -> tuple[str, dict[str, str]]:
    drawn, files = list[list[str]](), dict[str, str]()
    for workload in workloads:
        lines, found = _draw(definition, workload, roots, named)
        drawn.append(lines)
        files |= found
    if len(drawn) == 1:
        body = ["def get_inputs():", *(f"    {line}" for line in drawn[0])]
    else:
        names = [str(number) for number in range(1, len(drawn) + 1)]
        body = [f"workloads = {names!r}", "", "", f"def get_inputs(workload={names[0]!r}):"]
        for name, lines in zip(names, drawn, strict=True):
            body += [f"    if workload == {name!r}:", *(f"        {line}" for line in lines)]
    inputs = "".join(f"{line}\n" for line in body)
    text = _AROUND.format(names=", ".join(definition["inputs"]), inputs=inputs)
    return definition["reference"] + text + (_LOAD if files else ""), files


def _draw(
    definition: Mapping[str, Any], workload: Mapping[str, Any], roots: Sequence[Path], named: NamedInput
) -> tuple[list[str], dict[str, str]]:
    """Statements that draw the inputs of one workload, and its files."""
    reference, inputs = definition["reference"], definition["inputs"]
    entry = definition.get("custom_inputs_entrypoint")
    _check(definition["name"], reference, ("run", entry) if entry else ("run",))
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(f"definition {definition['name']}: input {name!r} is no Python name: rename it")
    sizes = axis_sizes(definition["axes"], workload["axes"])
    given = {name: {"type": _kind(value), **value} for name, value in workload["inputs"].items()}
    made = list[str]()
    if any(value["type"] == "custom" for value in given.values()):
        if not entry:
            raise UsageError(f"definition {definition['name']} names no custom_inputs_entrypoint: add it")
        scalars = {name: v["value"] for name, v in given.items() if v["type"] == "scalar"}
        arguments = ", ".join(f"{k!r}: {_literal(v)}" for k, v in {**sizes, **scalars}.items())
        made = [f"_made = {entry}({{{arguments}}}, _torch.device('cpu'))"]
    stored = [given[name] for name in inputs if name in given and given[name]["type"] == "safetensors"]
    files = {value["path"]: _found(value["path"], roots) for value in stored}
    sampling = definition.get("op_type") == "sampling"
    values = [
        _stated(given[name], name, files)
        if name in given and given[name]["type"] != "random"
        else _random(name, spec, sizes, named) + (".softmax(-1)" if sampling and name == "probs" else "")
        for name, spec in inputs.items()
    ]
    return [*made, f"return [{', '.join(values)}]"], files


def _check(name: str, reference: str, functions: Sequence[str]) -> None:
    try:
        tree = ast.parse(reference)
    except NOT_PYTHON as error:
        why = str(error) or type(error).__name__
        raise UsageError(f"definition {name}: its reference is not Python ({why}): correct it") from error
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in functions:
        if function not in there:
            raise UsageError(f"definition {name}: its reference has no function {function}: add it")


def _kind(given: Mapping[str, Any]) -> str:
    """Of an input; the formats let a workload leave out the name of the kind."""
    found = "scalar" if "value" in given else "safetensors" if "path" in given else "random"
    return str(given.get("type", found))


def _stated(given: Mapping[str, Any], name: str, files: Mapping[str, str]) -> str:
    """Expression for an argument that the workload says."""
    kind = given["type"]
    if kind == "scalar":
        return _literal(given["value"])
    if kind == "custom":
        return f"_made[{name!r}]"
    if kind == "safetensors":
        return f"_stored({files[given['path']]!r}, {given['tensor_key']!r})"
    raise CannotRunError(f"input {name} is of the unknown kind {kind!r}")


def _random(name: str, spec: Mapping[str, Any], sizes: Mapping[str, int], named: NamedInput) -> str:
    """Expression for an argument that is drawn."""
    if spec["shape"] is None:
        raise CannotRunError(f"input {name} is a random scalar, and each draw would be another problem")
    if spec["dtype"] not in tuple(DType):
        raise CannotRunError(f"input {name} is {spec['dtype']}, which has no arithmetic here")
    dtype, shape = DType(spec["dtype"]), [sizes[axis] for axis in spec["shape"]]
    torch_dtype = f"_torch.{dtype.value}"
    if not dtype.is_floating:
        low, high = _RANGES.get(dtype, _RANGE)
        return f"_torch.randint({low}, {high}, {shape}, dtype={torch_dtype})"
    if dtype.value.startswith("float8"):
        return f"_torch.randn({shape}).clamp(-2.0, 2.0).to({torch_dtype})"
    drawn = named(name, str(spec.get("description") or ""), dtype, shape)
    return f"{drawn or f'_torch.randn({shape})'}.to({torch_dtype})"


def _literal(value: float | bool | str | None) -> str:
    """Python for a scalar of JSON, which may be infinite or no number."""
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f"float('{value}')"


def _found(path: str, roots: Sequence[Path]) -> str:
    for root in roots:
        file = root / path
        if file.is_file():
            if _is_pointer(file):
                raise CannotRunError(
                    f"its tensors in {path} are not fetched yet: run git lfs pull in the folder that has them"
                )
            return str(file)
    raise CannotRunError(f"its tensors are in {path}, which is not on this machine")


def _is_pointer(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
