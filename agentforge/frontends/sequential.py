"""A sequential C or C++ function as a `Definition` whose reference compiles and runs the original.

For float64, the same source is compiled with `double` instead of `float`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.schema import TargetError

from .c_functions import DTYPES, CFunction, CParameter, choose_function

DEFAULT_SIZE = 1 << 22
"""Elements of the arrays if the function has one size and the user gave none."""
_DOUBLES = ("sqrt", "exp", "log", "pow", "sin", "cos", "tan", "tanh", "fabs", "fmax", "fmin", "floor", "ceil",
            "erf", "rsqrt", "exp2", "log2", "log1p", "expm1", "fma", "round", "trunc")  # fmt: skip
_TIMEOUT_S = 300.0
_TAKEN = frozenset({"self", "lib", "torch", "value", "run", "len", "tuple", "SHAPES", "ValueError"})
"""Names that the generated forwards use themselves."""


@dataclass(frozen=True)
class Sequential:
    """A function with values for all its sizes."""

    source: str
    function: CFunction
    shapes: Mapping[str, tuple[int, ...]]
    """Shapes of arrays, by parameter."""
    scalars: Mapping[str, int | float]
    """Values of the other parameters."""
    read: frozenset[str]
    """Arrays that are inputs: const ones, and those whose content before the call matters."""

    def python_name(self, parameter: CParameter) -> str:
        """The parameter's name in generated Python: `in` is `in_` there."""
        name, others = parameter.name, {p.name for p in self.function.parameters} - {parameter.name}
        while keyword.iskeyword(name) or name in _TAKEN or name in others:
            name += "_"
        return name

    @property
    def inputs(self) -> tuple[CParameter, ...]:
        """Parameters of `forward`, in order."""
        return tuple(p for p in self.function.arrays if p.name in self.read)

    @property
    def outputs(self) -> tuple[CParameter, ...]:
        """Arrays that `forward` returns, in order, before the function's own result."""
        return tuple(p for p in self.function.arrays if not p.const)


def parse_sequential(path: Path, sizes: Mapping[str, tuple[int, ...]]) -> Sequential:
    """Read a function, whose const arrays count as its inputs.

    Args:
        sizes: by parameter: shapes of arrays, values of sizes.

    Raises:
        TargetError: it cannot be read, or sizes are missing.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    function = choose_function(source, path.stem)
    unknown = set(sizes) - {p.name for p in function.parameters}
    if unknown:
        raise TargetError(f"{function.name} has no parameter {sorted(unknown)[0]!r}")
    scalars = _scalars(function, sizes)
    shapes = _shapes(function, sizes, scalars)
    const = frozenset(p.name for p in function.arrays if p.const)
    return Sequential(source, function, shapes, scalars, const)


def read_sequential(path: Path, sizes: Mapping[str, tuple[int, ...]]) -> Sequential:
    """Read a function, and run it once to find which arrays it reads before it writes them.

    Args:
        sizes: by parameter: shapes of arrays, values of sizes.

    Raises:
        TargetError: it cannot be read, compiled or run, or sizes are missing.
    """
    found = parse_sequential(path, sizes)
    try:
        mattering = run_child(
            "agentforge.frontends.sequential:contents_that_matter",
            {"reference": reference(found), "outputs": [p.name for p in found.outputs]},
            timeout_s=_TIMEOUT_S,
        )
    except ChildFailure as failure:
        raise TargetError(
            f"{found.function.name} of {path.name} cannot be run: {failure}; check its sizes"
        ) from failure
    return replace(found, read=found.read | frozenset(mattering))


def contents_that_matter(payload: dict[str, Any], report: Callable[[str], None]) -> list[str]:
    """Run in a child process: outputs whose content before the call changes the result."""
    report("running the original")
    module: dict[str, Any] = {"__name__": "reference", "__file__": "reference.py"}
    exec(compile(payload["reference"], "reference.py", "exec"), module)
    inputs = module["get_inputs"]()

    def results(fill: dict[str, int]) -> list[Any]:
        return [result.nan_to_num() for result in module["run"](inputs, fill)]

    plain = results({})
    return [
        name
        for name in payload["outputs"]
        if any(not bool((a == b).all()) for a, b in zip(plain, results({name: 1}), strict=True))
    ]


def _scalars(function: CFunction, sizes: Mapping[str, tuple[int, ...]]) -> dict[str, int | float]:
    values: dict[str, int | float] = {}
    for parameter in function.scalars:
        if parameter.name in sizes:
            values[parameter.name] = prod(sizes[parameter.name])
        elif not parameter.whole:
            values[parameter.name] = 1.0
        elif sum(p.whole for p in function.scalars) == 1:
            given = next((prod(sizes[p.name]) for p in function.arrays if p.name in sizes), DEFAULT_SIZE)
            values[parameter.name] = given
        else:
            raise TargetError(
                f"{function.name} has several sizes: say what they are, with the shapes of its arrays, "
                f"e.g. --input-shape {parameter.name}=512 --input-shape {function.arrays[0].name}=512,512"
            )
    return values


def _shapes(
    function: CFunction, sizes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int | float]
) -> dict[str, tuple[int, ...]]:
    whole = [int(scalars[p.name]) for p in function.scalars if p.whole]
    shapes = {}
    for array in function.arrays:
        if array.name in sizes:
            shapes[array.name] = tuple(sizes[array.name])
        elif len(whole) == 1:
            shapes[array.name] = (whole[0],)
        else:
            raise TargetError(f"how many elements has {array.name}? e.g. --input-shape {array.name}=512,512")
    return shapes


def shim(found: Sequential) -> str:
    """The original with an `extern "C"` function `agentforge_run` that calls it."""
    function = found.function
    declared = ", ".join(p.declaration for p in function.parameters)
    called = f"{function.name}({', '.join(p.name for p in function.parameters)});"
    keep = "" if function.result == "void" else "return "
    entry = f'extern "C" {function.result} agentforge_run({declared}) {{ {keep}{called} }}'
    return f"{found.source.rstrip()}\n\n{entry}\n"


def in_double(text: str) -> str:
    """The source with double for float, including calls to the C library."""
    heads = [m.end() for m in re.finditer(r"^[ \t]*#[ \t]*include[^\n]*\n", text, re.MULTILINE)]
    macros = "".join(f"#define {name}f {name}\n" for name in _DOUBLES)
    place = heads[-1] if heads else 0
    return f"{text[:place]}#define float double\n{macros}{text[place:]}"


def reference(found: Sequential) -> str:
    """A reference in KernelBench's convention that runs the original."""
    names = map(found.python_name, found.inputs)
    parameters = [(p.name, p.type, p.pointer, p.name in found.read) for p in found.function.parameters]
    outputs = [p.name for p in found.outputs]
    dtypes = {p.type: p.dtype for p in found.function.parameters}
    if found.function.result != "void":
        dtypes[found.function.result] = DTYPES[found.function.result]
    return _TEMPLATE.format(
        name=found.function.name,
        source=_quoted(shim(found)),
        double=_quoted(in_double(shim(found))),
        parameters=parameters,
        dtypes=dtypes,
        shapes=dict(found.shapes),
        scalars=dict(found.scalars),
        result=found.function.result,
        arguments=", ".join(names),
        outputs=outputs,
    )


def without_sizes(text: str) -> str:
    """What references of one function in all sizes have in common; all of a reference of another kind."""
    return text.partition("\nSHAPES = ")[0]


def _quoted(text: str) -> str:
    """A Python literal over several lines, readable for people and models."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\\\n{escaped}"""'


_TEMPLATE = '''\
"""What {name} computes, by running the sequential original."""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import torch

SOURCE = {source}

IN_DOUBLE = {double}

PARAMETERS = {parameters}  # name, C type, array, read
DTYPES = {dtypes}
SHAPES = {shapes}
SCALARS = {scalars}
OUTPUTS = {outputs}
CTYPES = {{
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64, "int32": ctypes.c_int32,
    "int16": ctypes.c_int16, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "bool": ctypes.c_bool,
}}


@functools.cache
def library(double):
    with tempfile.TemporaryDirectory(prefix="sequential-") as folder:  # a loaded library needs no file
        Path(folder, "original.cpp").write_text(IN_DOUBLE if double else SOURCE)
        command = ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "original.cpp", "-o", "original.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return ctypes.CDLL(str(Path(folder, "original.so"))).agentforge_run


def dtype_of(kind, double):
    name = DTYPES[kind]
    return torch.float64 if double and name == "float32" else getattr(torch, name)


@torch.compiler.disable
def run(inputs, fill=None):
    if any(type(t) is not torch.Tensor for t in inputs):
        raise TypeError("the original runs on real tensors only")  # a traced one has no memory
    kinds = [kind for _, kind, is_array, read in PARAMETERS if is_array and read]
    double = any(k == "float" and t.dtype == torch.float64 for k, t in zip(kinds, inputs))
    given, arrays, arguments = list(inputs), {{}}, []
    for name, kind, is_array, read in PARAMETERS:
        dtype = dtype_of(kind, double)
        if not is_array:
            exact = str(dtype).removeprefix("torch.")
            arguments.append(CTYPES[exact](SCALARS[name]))
            continue
        if read:
            tensor = given.pop(0).contiguous()
            if tuple(tensor.shape) != SHAPES[name]:
                raise ValueError(f"the sizes are those of {{name}} of shape {{SHAPES[name]}}")
            arrays[name] = tensor.clone() if name in OUTPUTS else tensor
        else:
            arrays[name] = torch.full(SHAPES[name], (fill or {{}}).get(name, 0), dtype=dtype)
        arguments.append(ctypes.c_void_p(arrays[name].data_ptr()))
    function = library(double)
    returned = "{result}"
    if returned == "void":
        function.restype = None
    else:
        function.restype = CTYPES[str(dtype_of(returned, double)).removeprefix("torch.")]
    value = function(*arguments)
    results = [arrays[name] for name in OUTPUTS]
    if returned != "void":
        results.append(torch.tensor(value, dtype=dtype_of(returned, double)))
    return results


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        results = run([{arguments}])
        return results[0] if len(results) == 1 else tuple(results)


def get_inputs():
    drawn = []
    for name, kind, is_array, read in PARAMETERS:
        if is_array and read:
            dtype = getattr(torch, DTYPES[kind])
            floating = dtype.is_floating_point
            values = torch.randn(SHAPES[name]) if floating else torch.randint(0, 100, SHAPES[name])
            drawn.append(values.to(dtype))
    return drawn


def get_init_inputs():
    return []
'''
