"""Extract a region as a stand-alone `Definition` in KernelBench's convention."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from agentforge.problems.sizes import common, named_sizes, skeleton
from agentforge.schema import Definition, Distribution, DType, TensorInput, Workload, content_hash

from ..float32 import precision_line
from .experts import grouped_product
from .operators import Kind, kind_of, op_name, value_of
from .region import Region
from .value_capture import CapturedValues


@dataclass(frozen=True)
class Extracted:
    """An extracted region: its problem and its workload."""

    definition: Definition
    workload: Workload


class CannotExtract(Exception):
    """The region cannot be written as source, for example because of a higher-order operator or a non-tensor
    value.
    """


def structure_key(region: Region, seen: Mapping[Node, CapturedValues]) -> str:
    """Hash of operators, constants, shapes, dtypes and strides; equal for identical layers.

    Raises:
        CannotExtract: the region cannot be written as source.
    """
    body = "\n".join(_body(region, _names(region)))
    inputs = [
        (s.tensor.shape, s.tensor.dtype, s.tensor.strides, bool(s.pattern)) for s in _inputs(region, seen)
    ]
    return content_hash([region.op_type, body, inputs])


def extract(region: Region, seen: Mapping[Node, CapturedValues]) -> Extracted:
    """Write a region as a `Definition` with the workload captured at its call site.

    Args:
        region: its input activations, weights and buffers become arguments of forward, in the order of
            `region.inputs`.

    Raises:
        CannotExtract: the region cannot be written as source.
    """
    names = _names(region)
    values = _inputs(region, seen)
    specs = [
        s.tensor.model_copy(update={"name": names[n]}) for n, s in zip(region.inputs, values, strict=True)
    ]
    draws = [_pattern(s, spec) or draw_expression(spec) for s, spec in zip(values, specs, strict=True)]
    outputs = [_shape_text(seen[o].tensor) for o in region.outputs if o in seen]
    title = f"{region.op_type}: {', '.join(_operators(region))}"
    source = _SOURCE.format(
        title=_wrap(title),
        precision=precision_line(),
        outputs=", ".join(outputs) or "nothing",
        parameters=", ".join(s.name for s in specs),
        body="\n".join(f"        {line}" for line in _body(region, names)),
        draws="\n".join(
            f"        {d},  # {s.name}: {_shape_text(s)}" for d, s in zip(draws, specs, strict=True)
        ),
        helpers=_helpers(region, strided=any("_strided(" in d for d in draws)),
    )
    label = _label(region, seen)
    definition = Definition(
        name=f"{region.op_type}_{label}_{structure_key(region, seen)[:4]}",
        op_type=region.op_type,
        reference=source,
        description=f"{title} -> {', '.join(outputs)}",
    )
    workload = Workload(
        name=label, source="reference" if any(s.pattern for s in values) else "spec", inputs=tuple(specs)
    )
    return Extracted(definition, workload)


def extract_range(
    sites: Sequence[tuple[Region, Mapping[Node, CapturedValues]]],
) -> tuple[str, Definition, tuple[Workload, ...]] | None:
    """One definition for a region that was captured at several sizes, with a workload for each.

    Returns:
        A key that is equal for identical layers, the definition and the workloads; None if the sizes cannot
        be read from the region's inputs.

    Raises:
        CannotExtract: the region cannot be written as source.
    """
    found = [extract(region, seen).workload for region, seen in sites]
    inputs = [[i for i in w.inputs if isinstance(i, TensorInput)] for w in found]
    if (
        any(w.source != "spec" for w in found)
        or len({tuple(len(i.shape) for i in one) for one in inputs}) > 1
    ):
        return None
    names, sizes = named_sizes([[i.shape for i in one] for one in inputs])
    body = common(["\n".join(_body(region, _names(region))) for region, _ in sites], sizes)
    if body is None:
        return None
    region, seen = sites[-1]
    read = [f"{name} = {inputs[0][place].name}.shape[{dim}]" for name, (place, dim) in names.items()]
    lines = [*read, *body.filled(body.terms).splitlines()]
    title = f"{region.op_type}: {', '.join(_operators(region))}"
    outputs = [_shape_text(seen[o].tensor) for o in region.outputs if o in seen]
    source = _SOURCE.format(
        title=_wrap(title),
        precision=precision_line(),
        outputs=f"{', '.join(outputs)} or other sizes",
        parameters=", ".join(i.name for i in inputs[-1]),
        body="\n".join(f"        {line}" for line in lines),
        draws="\n".join(f"        {draw_expression(i)}," for i in inputs[-1]),
        helpers=_helpers(region, strided=any(i.strides for i in inputs[-1])),
    )
    key = content_hash(
        [region.op_type, lines, [[(i.shape, i.dtype, i.strides) for i in one] for one in inputs]]
    )
    definition = Definition(
        name=f"{region.op_type}_{_label(region, seen)}_{key[:4]}",
        op_type=region.op_type,
        reference=source,
        description=f"{title}, for {len(sites)} shapes",
    )
    return key, definition, tuple(found)


def body_skeleton(region: Region) -> str:
    """The statements of a region without numbers: equal for a region at several sizes.

    Raises:
        CannotExtract: the region cannot be written as source.
    """
    return skeleton("\n".join(_body(region, _names(region))))


def _inputs(region: Region, seen: Mapping[Node, CapturedValues]) -> list[CapturedValues]:
    missing = [n for n in region.inputs if n not in seen]
    if missing:
        raise CannotExtract(f"its input {missing[0].name} is {_unlike(missing[0])}")
    return [seen[n] for n in region.inputs]


def _unlike(node: Node) -> str:
    """Why no workload describes a value."""
    value, other = value_of(node), "a number, or a tensor that is sparse, nested or quantized"
    if value is None or value.layout is not torch.strided or value.is_quantized:
        return other
    dtype = str(value.dtype).removeprefix("torch.")
    return other if dtype in tuple(DType) else f"of a dtype that is not supported ({dtype})"


def _operators(region: Region) -> list[str]:
    return [op_name(n) for n in region.nodes if kind_of(n) is not Kind.VIEW]


def _label(region: Region, seen: Mapping[Node, CapturedValues]) -> str:
    """Shape and dtype of the region's largest output."""
    outputs = [seen[o].tensor for o in region.outputs if o in seen]
    if not outputs:
        raise CannotExtract("it returns no tensor that a workload can describe")
    largest = max(outputs, key=lambda t: t.numel)
    return "_".join(["x".join(map(str, largest.shape)) or "scalar", largest.dtype.value])


def _shape_text(tensor: TensorInput) -> str:
    strides = f" strides {list(tensor.strides)}" if tensor.strides is not None else ""
    return f"{tensor.dtype.value}{list(tensor.shape)}{strides}"


def _wrap(text: str) -> str:
    return text if len(text) <= 90 else text[:87] + "..."


def _names(region: Region) -> dict[Node, str]:
    """Readable names that depend only on the region's structure, not on its place in the model."""
    taken: dict[str, int] = {}
    names: dict[Node, str] = {}
    for node in region.inputs:
        names[node] = _fresh(_weight_name(str(node.target)) if node.op == "get_attr" else "x", taken)
    for node in region.nodes:
        names[node] = _fresh(op_name(node), taken)
    return names


def _weight_name(path: str) -> str:
    """Last part of a weight's path; a number in a `ParameterList` and a key of a dict become identifiers."""
    name = path.rpartition(".")[2]
    return name if name.isidentifier() else f"weight_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"


def _fresh(wanted: str, taken: dict[str, int]) -> str:
    base = wanted.strip("_") or "value"
    if keyword.iskeyword(base) or base in ("self", "torch", "aten") or hasattr(builtins, base):
        base = f"{base}_op"
    count = taken.get(base, 0)
    taken[base] = count + 1
    if not count:
        return base
    return _fresh(f"{base}_{count}", taken) if f"{base}_{count}" in taken else f"{base}_{count}"


def _body(region: Region, names: Mapping[Node, str]) -> list[str]:
    """The statements of forward; each view is written once."""
    lines: list[str] = []
    written: dict[str, str] = {}
    alias = dict(names)
    for node in region.nodes:
        call = _call(node, alias)
        if kind_of(node) is Kind.VIEW and call in written:
            alias[node] = written[call]
            continue
        written[call] = alias[node]
        value = value_of(node)
        shape = (
            f"  # {str(value.dtype).removeprefix('torch.')}{list(value.shape)}" if value is not None else ""
        )
        lines.append(f"{alias[node]} = {call}{shape}")
    outputs = [alias[o] for o in region.outputs if value_of(o) is not None]
    lines.append(f"return {', '.join(outputs)}")
    return lines


def _call(node: Node, names: Mapping[Node, str]) -> str:
    if node.target is operator.getitem:
        return f"{_text(node.args[0], names)}[{node.args[1]}]"
    if _is_looped(node):
        return f"_grouped_mm({', '.join(names[n] for n in grouped_product(node) or ())})"
    if not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace != "aten":
        raise CannotExtract(f"{op_name(node)} is no built-in tensor operator of PyTorch")
    args = [_text(a, names) for a in node.args]
    args += [f"{k}={_text(v, names)}" for k, v in {**node.kwargs, **_default_dtype(node)}.items()]
    name = node.target._schema.name.split("::")[1]
    return f"aten.{name}.{node.target._overloadname}({', '.join(args)})"


def _default_dtype(node: Node) -> dict[str, torch.dtype]:
    """The dtype of what an operator makes from nothing, if the model's file sets another default dtype."""
    value = value_of(node)
    if kind_of(node) is not Kind.FACTORY or value is None or torch.get_default_dtype() is torch.float32:
        return {}
    named = (f.name for f in node.target._schema.arguments if f.kwarg_only)
    return {"dtype": value.dtype} if "dtype" in named else {}


def _is_looped(node: Node) -> bool:
    """True for a grouped product in an operator of transformers: the source has the loop that it runs."""
    return op_name(node) == "grouped_mm_fallback" and grouped_product(node) is not None


def _helpers(region: Region, *, strided: bool) -> str:
    """Functions that the source calls."""
    return (GROUPED if any(map(_is_looped, region.nodes)) else "") + (STRIDED if strided else "")


def _text(value: Any, names: Mapping[Node, str]) -> str:
    """An argument as Python source."""
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v, names) for v in value)}]"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({_text(value.real, names)}, {_text(value.imag, names)})"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    raise CannotExtract(f"an argument of type {type(value).__name__} cannot be written")


def _pattern(seen: CapturedValues, spec: TensorInput) -> str | None:
    """Expression of the recognised pattern, with the captured strides."""
    if seen.pattern is None or spec.strides is None or 0 in spec.strides:
        return seen.pattern
    return f"_strided({seen.pattern}, {spec.strides})"


def draw_expression(spec: TensorInput) -> str:
    """Python expression that draws a tensor with the shape, dtype, strides and distribution of `spec`."""
    if spec.strides is None:
        return _draw(spec.shape, spec.dtype, spec.distribution)
    # A dimension of stride 0 repeats one element, so it is drawn once.
    base = tuple(1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))
    drawn = f"_strided({_draw(base, spec.dtype, spec.distribution)}, {spec.strides})"
    return drawn if base == spec.shape else f"{drawn}.expand({spec.shape})"


def _draw(shape: Sequence[int], dtype: DType, distribution: Distribution) -> str:
    sizes, a, b = tuple(shape), distribution.a, distribution.b
    cast = "" if dtype is DType.FLOAT32 else f".to(torch.{dtype.value})"
    match distribution.kind:
        case "integers":
            return f"torch.randint({int(a)}, {int(b)}, {sizes}, dtype=torch.{dtype.value})"
        case "bernoulli":
            return f"torch.rand({sizes}) < {a!r}"
        case "constant":
            return f"torch.full({sizes}, {_text(a, {})}, dtype=torch.{dtype.value})"
        case "uniform":
            return f"{_scaled(f'torch.rand({sizes})', float(f'{b - a:.6g}'), a)}{cast}"
    complex_dtype = ", dtype=torch.complex64" if dtype is DType.COMPLEX64 else ""
    drawn = _scaled(f"torch.randn({sizes}{complex_dtype})", b, a)
    return drawn if complex_dtype else f"{drawn}{cast}"


def _scaled(drawn: str, factor: float, offset: float) -> str:
    """`(drawn * factor + offset)`, without neutral operations."""
    text = drawn if factor == 1.0 else f"{drawn} * {factor!r}"
    text = text if offset == 0.0 else f"{text} + {offset!r}"
    return text if text == drawn else f"({text})"


GROUPED = '''
@torch.compiler.disable
def _grouped_mm(rows, weights, ends):
    """Multiply each group of rows with its matrix; a group ends before the row that `ends` names."""
    result = rows.new_zeros(len(rows), weights.shape[-1])
    start = 0
    for weight, end in zip(weights, ends.tolist()):
        result[start:end] = rows[start:end] @ weight
        start = end
    return result

'''

STRIDED = '''
def _strided(values, strides):
    """The values in memory of the given strides."""
    return torch.empty_strided(values.shape, strides, dtype=values.dtype).copy_(values)

'''

_SOURCE = '''"""{title}

Returns {outputs}. Cut out of a model's forward; weights are inputs.
"""

import torch
import torch.nn as nn

aten = torch.ops.aten
{precision}

class Model(nn.Module):
    def forward(self, {parameters}):
{body}

{helpers}
def get_inputs():
    return [
{draws}
    ]


def get_init_inputs():
    return []
'''
