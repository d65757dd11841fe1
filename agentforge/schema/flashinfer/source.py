"""One workload of a foreign definition as a source in KernelBench's convention.

Covers the FlashInfer Trace schema and what SOL-ExecBench adds to it: axes that are expressions, inputs that a
function of the reference makes, and tensors in safetensors files.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..definition import DType
from ..errors import UsageError
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


def get_inputs():
{lines}    return [{values}]
'''
_LOAD = """

def _stored(path, key):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.get_tensor(key)
"""
_RANGES = {DType.INT8: (-128, 128), DType.BOOL: (0, 2)}
_RANGE = (-1024, 1024)
"""Of random integers, as SOL-ExecBench and FlashInfer-Bench draw them."""


class CannotRunError(UsageError):
    """A workload that is well formed and cannot run here; the message says why."""


def workload_source(definition: Mapping[str, Any], workload: Mapping[str, Any], roots: Sequence[Path]) -> str:
    """The reference, with `Model`, `get_init_inputs()` and `get_inputs()` of this workload below it.

    Args:
        roots: folders that paths of safetensors files may be relative to.

    Raises:
        CannotRunError: a dtype that has no arithmetic here, a file that is missing, a random scalar.
        UsageError: a field is missing or does not fit.
    """
    name = f"definition {definition.get('name', '')}".strip()
    try:
        return _source(definition, workload, roots)
    except KeyError as error:
        raise UsageError(f"{name}: {error} is missing: correct the suite") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{name} does not follow its schema ({error}): correct the suite") from error


def _source(definition: Mapping[str, Any], workload: Mapping[str, Any], roots: Sequence[Path]) -> str:
    reference, inputs = definition["reference"], definition["inputs"]
    entry = definition.get("custom_inputs_entrypoint")
    _check(definition["name"], reference, ("run", entry) if entry else ("run",))
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(f"definition {definition['name']}: input {name!r} is no Python name: rename it")
    sizes = axis_sizes(definition["axes"], workload["axes"])
    given = workload["inputs"]
    made = ""
    if any(value["type"] == "custom" for value in given.values()):
        if not entry:
            raise UsageError(f"definition {definition['name']} names no custom_inputs_entrypoint: add it")
        scalars = {name: v["value"] for name, v in given.items() if v["type"] == "scalar"}
        arguments = ", ".join(f"{k!r}: {_literal(v)}" for k, v in {**sizes, **scalars}.items())
        made = f"    _made = {entry}({{{arguments}}}, _torch.device('cpu'))\n"
    values = [_value(name, spec, given[name], sizes, roots) for name, spec in inputs.items()]
    text = _AROUND.format(
        names=", ".join(inputs),
        lines=made,
        values=", ".join(values),
    )
    stored = any(value["type"] == "safetensors" for value in given.values())
    return reference + text + (_LOAD if stored else "")


def _check(name: str, reference: str, functions: Sequence[str]) -> None:
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise UsageError(f"definition {name}: its reference is not Python ({why}): correct it") from error
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in functions:
        if function not in there:
            raise UsageError(f"definition {name}: its reference has no function {function}: add it")


def _value(
    name: str,
    spec: Mapping[str, Any],
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    roots: Sequence[Path],
) -> str:
    """Expression for one argument."""
    kind = given["type"]
    if kind == "scalar":
        return _literal(given["value"])
    if kind == "custom":
        return f"_made[{name!r}]"
    if kind == "safetensors":
        return f"_stored({_found(given['path'], roots)!r}, {given['tensor_key']!r})"
    if kind != "random":
        raise CannotRunError(f"input {name} is of the unknown kind {kind!r}")
    if spec["shape"] is None:
        raise CannotRunError(f"input {name} is a random scalar, and each draw would be another problem")
    if spec["dtype"] not in tuple(DType):
        raise CannotRunError(f"input {name} is {spec['dtype']}, which has no arithmetic here")
    dtype, shape = DType(spec["dtype"]), [sizes[axis] for axis in spec["shape"]]
    torch_dtype = f"_torch.{dtype.value}"
    if not dtype.is_floating:
        low, high = _RANGES.get(dtype, _RANGE)
        return f"_torch.randint({low}, {high}, {shape}, dtype={torch_dtype})"
    clamped = ".clamp(-2.0, 2.0)" if dtype.value.startswith("float8") else ""
    return f"_torch.randn({shape}){clamped}.to({torch_dtype})"


def _literal(value: float | bool | str | None) -> str:
    """Python for a scalar of JSON, which may be infinite or no number."""
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f"float('{value}')"


def _found(path: str, roots: Sequence[Path]) -> str:
    for root in roots:
        if (root / path).is_file():
            return str(root / path)
    raise CannotRunError(f"its tensors are in {path}, which is not on this machine")
