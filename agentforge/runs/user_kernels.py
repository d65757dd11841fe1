"""Kernels that a user brings, as solutions of a definition: what a search begins with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.frontends.c_functions import DTYPES, CFunction, CParameter, choose_function
from agentforge.frontends.sequential import Sequential, shim
from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.languages import read_solution
from agentforge.schema import (
    BuildSpec,
    Definition,
    Solution,
    SourceFile,
    TargetError,
    TensorInput,
    UsageError,
    Workload,
)

CPP = (".cpp", ".cc", ".cxx", ".c")
NATIVE = ("-O3", "-march=native", "-fopenmp")


@dataclass(frozen=True)
class UserKernel:
    """A solution that a search begins with, and what it is."""

    strategy: str
    why: str
    solution: Solution


def check_kernel(path: Path, device: str) -> str:
    """Read a user's kernel as far as that takes no reference.

    Args:
        device: type of `torch.device` that the reference is loaded on.

    Returns:
        Its language.

    Raises:
        UsageError: it cannot be read, how it is called cannot be inferred, or it is bare C++ for a GPU.
    """
    place = _with_model_new(path)
    if place is not None:
        return read_solution(place, "unknown").spec.language
    _bare(path)
    if device != "cpu":
        raise UsageError(f"{path.name} is bare C++, which runs on the CPU: add --device cpu")
    return "cpp"


def read_kernel(path: Path, definition: Definition, workload: Workload, device: str) -> UserKernel:
    """A user's kernel: a folder or Python file with `ModelNew` (C++, Triton, CUDA, PyTorch), or bare C++.

    Bare C++ gets a `ModelNew` that passes the inputs, fresh outputs and sizes.

    Raises:
        UsageError: it cannot be read, or its parameters cannot be inferred.
        TargetError: the reference cannot be run.
    """
    why = f"the user's kernel, {path.name}"
    place = _with_model_new(path)
    if place is None:
        return UserKernel("given-kernel", why, _bind(path, definition, workload, device))
    return UserKernel("given-kernel", why, read_solution(place, definition.hash))


def _with_model_new(path: Path) -> Path | None:
    """The file or folder with `ModelNew`; None for bare C++."""
    beside = path.with_name("model_new.py").is_file()
    if path.suffix in CPP and not beside:
        return None
    if not path.is_file() or path.suffix == ".py":
        return path
    if not beside:
        raise UsageError(
            f"cannot infer how {path.name} is called: write model_new.py with class ModelNew beside it"
        )
    return path.absolute().parent


def _bare(path: Path) -> tuple[str, CFunction]:
    """The text of bare C++, and the function that is the kernel."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return source, choose_function(source, path.stem)


def _bind(path: Path, definition: Definition, workload: Workload, device: str) -> Solution:
    source, function = _bare(path)
    payload = {"definition": definition.model_dump(mode="json"), "device": device}
    try:
        found = run_child("agentforge.frontends.probe:probe", payload, timeout_s=600.0)
    except ChildFailure as failure:
        raise TargetError(f"{definition.name}: {failure}; run it with python first") from failure
    inputs = [i for i in workload.inputs if isinstance(i, TensorInput)]
    arguments, outputs = _arguments(path.name, function, inputs, found["outputs"])
    parameters = ", ".join(p.declaration for p in function.parameters)
    called = ", ".join(p.name for p in function.parameters)
    entry = f'extern "C" void agentforge_run({parameters}) {{ {function.name}({called}); }}'
    kernel = f"{source.rstrip()}\n\n{entry}\n"
    shapes = {i.name: tuple(i.shape) for i in inputs}
    made = [f"{name} = torch.empty({shape}, dtype={dtype})" for name, (shape, dtype) in outputs.items()]
    return _solution(path.stem, definition.hash, kernel, shapes, made, arguments, list(outputs))


def _arguments(
    name: str, function: CFunction, inputs: Sequence[TensorInput], outputs: Sequence[Any]
) -> tuple[list[str], dict[str, tuple[Sequence[int], str]]]:
    """What each parameter is passed, and the outputs to allocate.

    Arrays are the inputs in order and then the outputs; the sizes are the first input's.

    Raises:
        UsageError: the numbers do not fit.
    """
    read = [p for p in function.arrays if p.const]
    written = [p for p in function.arrays if not p.const]
    if len(read) != len(inputs) or len(written) != len(outputs):
        raise UsageError(
            f"{name}: {function.name} reads {len(read)} arrays (const) and writes {len(written)}, and the "
            f"reference has {len(inputs)} inputs and {len(outputs)} outputs: write model_new.py beside it"
        )
    by_name = {i.name: i.name for i in inputs}
    spare = [i.name for i in inputs if i.name not in {p.name for p in read}]
    values = {p.name: by_name.get(p.name) or spare.pop(0) for p in read}
    made = {f"out_{k}": (shape, dtype) for k, (shape, dtype) in enumerate(outputs)}
    values |= {p.name: f"out_{k}" for k, p in enumerate(written)}
    values |= _sizes(name, function, inputs[0].shape if inputs else tuple(outputs[0][0]))
    return [values[p.name] for p in function.parameters], made


def _sizes(name: str, function: CFunction, shape: Sequence[int]) -> dict[str, str]:
    """One size is the number of elements; two are rows and columns; as many as dimensions are those."""
    sizes = [p.name for p in function.scalars if p.whole]
    if len(sizes) != len(function.scalars):
        unknown = next(p.name for p in function.scalars if not p.whole)
        raise UsageError(
            f"{name}: cannot infer the value of scalar parameter `{unknown}`; "
            "add model_new.py next to the kernel"
        )
    count = math.prod(shape)
    if len(sizes) == len(shape):
        return {size: str(value) for size, value in zip(sizes, shape, strict=True)}
    if len(sizes) <= 1:
        return dict.fromkeys(sizes, str(count))
    if len(sizes) == 2 and shape:
        return {sizes[0]: str(count // max(shape[-1], 1)), sizes[1]: str(shape[-1])}
    raise UsageError(
        f"{name}: its {len(sizes)} sizes do not fit the input's shape: write model_new.py beside it"
    )


def parallel_versions(found: Sequential, definition: Definition) -> list[UserKernel]:
    """The original for this machine's instructions, and with its outer loops shared among threads."""
    original = shim(found)
    versions = {
        "native-code": ("the original, compiled for this machine", original),
        "parallel-loops": (
            "its outermost loops shared among threads",
            with_parallel_loops(original, found.function),
        ),
    }
    return [
        UserKernel(strategy, why, _of_sequential(found, definition, text, strategy))
        for strategy, (why, text) in versions.items()
        if strategy == "native-code" or text != original
    ]


def with_parallel_loops(text: str, function: CFunction) -> str:
    """The source with `omp parallel for` before the outermost loops of a function, sums reduced."""
    head = re.search(rf"\b{re.escape(function.name)}\s*\([^()]*\)[^;{{]*(?=\{{)", text)
    if head is None:
        return text
    end = _after(text, head.end())
    loops, position = [], head.end()
    while (loop := _FOR.search(text, position, end)) is not None:
        position = _after(text, loop.start())
        loops.append((loop.start(), position))
    for start, stop in reversed(loops):
        sums = _sums(text[head.end() : start], text[start:stop])
        clause = f" reduction(+: {', '.join(sums)})" if sums else ""
        text = f"{text[:start]}\n#pragma omp parallel for{clause}\n{text[start:]}"
    return text


_FOR = re.compile(r"\bfor\s*(?=\()")
_CONTROL = re.compile(r"\s*(?:for|while|if|switch)\s*(?=\()")
_PAIRS = {"(": ")", "{": "}"}


def _after(text: str, position: int) -> int:
    """The place after the statement that begins at `position`."""
    control = _CONTROL.match(text, position)
    if control is not None:
        return _after(text, _closed(text, control.end()))
    position += len(text[position:]) - len(text[position:].lstrip())
    if text[position : position + 1] == "{":
        return _closed(text, position)
    end = text.find(";", position)
    return len(text) if end < 0 else end + 1


def _closed(text: str, position: int) -> int:
    """The place after the bracket that closes the one at `position`."""
    opening, depth = text[position], 0
    for place in range(position, len(text)):
        depth += (text[place] == opening) - (text[place] == _PAIRS[opening])
        if depth == 0:
            return place + 1
    return len(text)


def _sums(before: str, loop: str) -> list[str]:
    """Scalars that are declared before a loop and added up in it."""
    declared = set(re.findall(r"\b(?:float|double|int|long)\s+(\w+)\s*=", before))
    return sorted(declared & set(re.findall(r"\b(\w+)\s*\+=", loop)))


def _of_sequential(found: Sequential, definition: Definition, kernel: str, strategy: str) -> Solution:
    shapes = {found.python_name(p): tuple(found.shapes[p.name]) for p in found.inputs}
    made, arguments, results = [], [], []
    for parameter in found.function.parameters:
        name = found.python_name(parameter)
        arguments.append(name if parameter.pointer else repr(found.scalars[parameter.name]))
        if parameter.pointer and not parameter.const:
            results.append(name)
            made.append(f"{name} = {_fresh(found, parameter)}")
    result = found.function.result
    return _solution(strategy, definition.hash, kernel, shapes, made, arguments, results, result, NATIVE)


def _fresh(found: Sequential, parameter: CParameter) -> str:
    if parameter.name in found.read:
        return f"{found.python_name(parameter)}.clone()"
    return f"torch.zeros({found.shapes[parameter.name]}, dtype=torch.{parameter.dtype})"


def _solution(
    name: str,
    definition: str,
    kernel: str,
    shapes: Mapping[str, tuple[int, ...]],
    made: Sequence[str],
    arguments: Sequence[str],
    results: Sequence[str],
    result: str = "void",
    flags: Sequence[str] = (),
) -> Solution:
    """The kernel behind a `ModelNew` that allocates, calls and returns."""
    returned = list(results)
    call = f"lib.agentforge_run({', '.join(arguments)})"
    if result != "void":
        call = f"value = {call}"
        returned.append(f"torch.tensor(value, dtype=torch.{DTYPES[result]})")
    body = "\n        ".join([*(f"{i} = {i}.contiguous()" for i in shapes), *made, call])
    model = _MODEL.format(
        inputs=", ".join(shapes), shapes=list(shapes.values()), body=body, returned=", ".join(returned)
    )
    return Solution(
        name=name,
        definition=definition,
        author="person",
        spec=BuildSpec(language="cpp", flags=tuple(flags)),
        sources=(
            SourceFile(path="kernel.cpp", content=kernel),
            SourceFile(path="model_new.py", content=model),
        ),
        description=name,
    )


_MODEL = """\
import torch

from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")
SHAPES = {shapes}


class ModelNew(torch.nn.Module):
    def forward(self, {inputs}):
        if [tuple(t.shape) for t in [{inputs}]] != SHAPES:
            raise ValueError(f"the sizes that are passed on are those of {{SHAPES}}")
        {body}
        return {returned}
"""
