"""Pytrees: a model's output as tensors and scalars with their paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .failures import LazyOutput, UnusableOutput
from .memory.shared_memory import DTYPES, MAX_DIMENSIONS, Layout, aligned
from .protocol import ProtocolViolation

Part = tuple[int, int, int]
"""A flat range of an output: number of the leaf, first element, count."""

NUMBER = "float"
"""Beginning of the path of a Python float."""
MAX_LEAVES = 4096
_MAX_ELEMENTS = 1 << 40
_is_lazy_clone: Callable[[torch.Tensor], bool] = torch._C._is_cow_tensor
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_READABLE = frozenset(DTYPES.values())


class Latitude(Protocol):
    """What else than the reference's is right for an integer or boolean output."""

    def settled(self, got: torch.Tensor, expected: torch.Tensor, first: int = 0) -> torch.Tensor:
        """`expected`, with the value from `got` at each element that is right too."""
        ...


@dataclass(frozen=True)
class Leaf:
    """One tensor or scalar of an output."""

    path: str
    """`out`, `out[0]`, `out['loss']`; `float(out)` for a Python float."""
    value: Any
    """A tensor, or None, bool, int, str; of a Python float a float64 tensor without dimensions."""
    alternative: torch.Tensor | None = None
    """Of a reference's output: its float64 computation in the same dtype, if the two differ in kind (finite,
    NaN or infinite) at some element. There, either value is right."""
    latitude: Latitude | None = None
    """Of an integer or boolean output of a reference: what else is right."""
    recomputed: Callable[[], Iterator[torch.Tensor]] | None = None
    """Of another tensor of a reference: gives it computed in other ways, one after the other."""


def flatten(value: Any, path: str = "out") -> list[Leaf]:
    """Take an output apart, depth first; mappings in the order of their keys.

    Raises:
        UnusableOutput: neither tensor, scalar, list, tuple nor mapping; a tensor subclass or lazy clone; of a
            type that does not travel; or too many of them.
    """
    leaves = _flatten(value, path)
    if len(leaves) > MAX_LEAVES:
        raise UnusableOutput(f"{path} has {len(leaves)} tensors and numbers; return at most {MAX_LEAVES}")
    return leaves


def _flatten(value: Any, path: str) -> list[Leaf]:
    if isinstance(value, torch.Tensor):
        if type(value) not in _PLAIN_TENSORS:
            raise LazyOutput(f"{path} is a tensor subclass, {type(value).__name__}; return a plain tensor")
        if value.layout is not torch.strided:
            raise UnusableOutput(f"{path} is not a dense tensor but {value.layout}")
        if _is_lazy_clone(value):
            raise LazyOutput(f"{path} is a lazy clone, which is copied later; use clone()")
        if value.dtype not in _READABLE:
            raise UnusableOutput(f"{path} has the type {value.dtype}, which is not compared; convert it")
        # Lazy negatives and conjugates: the bytes in memory are not yet the values.
        return [
            Leaf(path, value.resolve_neg().resolve_conj() if value.is_neg() or value.is_conj() else value)
        ]
    if isinstance(value, float):
        # As a tensor it has bounds from the reference's own error. Its path tells it from a tensor.
        return [Leaf(f"{NUMBER}({path})", torch.tensor(value, dtype=torch.float64))]
    if _scalar(value):
        return [Leaf(path, value)]
    if isinstance(value, (list, tuple)):
        return [leaf for i, item in enumerate(value) for leaf in _flatten(item, f"{path}[{i}]")]
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: repr(item[0]))
        return [leaf for key, item in items for leaf in _flatten(item, f"{path}[{key!r}]")]
    raise UnusableOutput(f"{path} is {type(value).__name__}, not a tensor")


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


@dataclass(frozen=True)
class LeafSpec:
    """What a worker says of one leaf: a layout, or the scalar itself."""

    path: str
    layout: Layout | None
    value: Any = None
    address: int = 0
    """Its address in the worker's memory, with the layout's strides."""

    @property
    def dtype(self) -> torch.dtype:
        """Of a tensor."""
        assert self.layout is not None
        return DTYPES[self.layout.dtype]

    def holds(self, first: int, count: int) -> bool:
        """Whether it is a tensor with `count` elements from a flat index on."""
        return self.layout is not None and first + count <= self.layout.numel


def layout_at(specs: Sequence[LeafSpec], index: int) -> Layout:
    """Where a leaf lies; of a leaf that is no tensor, or is not there, the layout of no elements."""
    layout = specs[index].layout if index < len(specs) else None
    return layout or Layout.dense((0,), "float32", 0)


def parse_leaves(message: Mapping[str, Any], capacity: int) -> list[LeafSpec]:
    """Check what a worker said of its output before anything is read from its block.

    Args:
        message: `{"leaves": [[path, shape, dtype] | [path, {"value": scalar}], ...]}`.

    Raises:
        ProtocolViolation: not of that form, or larger than the block.
    """
    raw = message.get("leaves")
    if not isinstance(raw, list) or len(raw) > MAX_LEAVES:
        raise ProtocolViolation("no list of outputs")
    specs, offset = [], 0
    for item in raw:
        spec = _parse_leaf(item, offset)
        if spec.layout is not None:
            offset += aligned(spec.layout.nbytes)
            if offset > capacity:
                raise ProtocolViolation("outputs larger than their memory")
        specs.append(spec)
    return specs


def _parse_leaf(item: Any, offset: int) -> LeafSpec:
    if not isinstance(item, list) or len(item) not in (2, 3) or not isinstance(item[0], str):
        raise ProtocolViolation("an output that is not described")
    path = item[0][:200]
    if len(item) == 2:
        if not isinstance(item[1], dict) or not _scalar(item[1].get("value")):
            raise ProtocolViolation("a scalar output that is none")
        return LeafSpec(path, None, item[1].get("value"))
    shape, dtype = item[1], item[2]
    known = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS and isinstance(dtype, str)
    sizes = shape if known and all(type(n) is int and n >= 0 for n in shape) else None
    # Sizes beside a zero count too: torch multiplies them.
    if sizes is None or math.prod(max(n, 1) for n in sizes) > _MAX_ELEMENTS or dtype not in DTYPES:
        raise ProtocolViolation("an output of impossible shape or type")
    return LeafSpec(path, Layout.dense(shape, dtype, offset))


def parse_located(message: Mapping[str, Any]) -> list[LeafSpec]:
    """Check a worker's description of its output in its own memory.

    Args:
        message: `{"leaves": [[path, shape, dtype, strides, address] | [path, {"value": scalar}], ...]}`.

    Raises:
        ProtocolViolation: not of that form.
    """
    raw = message.get("leaves")
    if not isinstance(raw, list) or len(raw) > MAX_LEAVES:
        raise ProtocolViolation("no list of outputs")
    return [_parse_located(item) for item in raw]


def _parse_located(item: Any) -> LeafSpec:
    if not isinstance(item, list) or len(item) != 5:
        return _parse_leaf(item, 0)
    spec, (strides, address) = _parse_leaf(item[:3], 0), item[3:]
    layout = spec.layout
    numbers = isinstance(strides, list) and all(type(n) is int and 0 <= n < _MAX_ELEMENTS for n in strides)
    if (
        layout is None
        or not numbers
        or len(strides) != len(layout.shape)
        or type(address) is not int
        or not 0 <= address < 1 << 63
    ):
        raise ProtocolViolation("an output at an impossible place")
    return LeafSpec(spec.path, Layout(layout.shape, layout.dtype, tuple(strides)), None, address)


def locate(leaves: list[Leaf]) -> list[list[Any]]:
    """The description that `parse_located` reads."""
    return [
        [leaf.path, list(leaf.value.shape), str(leaf.value.dtype).removeprefix("torch."),
         list(leaf.value.stride()), leaf.value.data_ptr()]
        if isinstance(leaf.value, torch.Tensor)
        else [leaf.path, {"value": leaf.value}]
        for leaf in leaves
    ]  # fmt: skip


def describe(leaves: list[Leaf]) -> list[list[Any]]:
    """The description that `parse_leaves` reads."""
    return [
        [leaf.path, list(leaf.value.shape), str(leaf.value.dtype).removeprefix("torch.")]
        if isinstance(leaf.value, torch.Tensor)
        else [leaf.path, {"value": leaf.value}]
        for leaf in leaves
    ]


def total_bytes(leaves: list[Leaf], itemsize: int | None = None) -> int:
    """Bytes that the tensors take in a block, each aligned."""
    return sum(
        aligned(leaf.value.numel() * (itemsize or leaf.value.element_size()))
        for leaf in leaves
        if isinstance(leaf.value, torch.Tensor)
    )


def pick(leaves: Sequence[Leaf], parts: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """Flat ranges of tensors, on the host; a range that is not there comes empty.

    It takes the same time whatever the strides are, and one copy from a device for each tensor.
    """
    found = [torch.empty(0)] * len(parts)
    for number in {part[0] for part in parts if part[0] < len(leaves)}:
        value = leaves[number].value
        if not isinstance(value, torch.Tensor):
            continue
        there = [(i, p) for i, p in enumerate(parts) if p[0] == number and p[1] + p[2] <= value.numel()]
        if there:
            flat = torch.cat([torch.arange(first, first + count) for _, (_, first, count) in there])
            pieces = _gather(value, flat).cpu().split([part[2] for _, part in there])
            for (i, _), piece in zip(there, pieces, strict=True):
                found[i] = piece
    return found


def _gather(tensor: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
    """The elements at flat indices, wherever they lie."""
    span, offsets = 1, torch.zeros_like(flat)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        span += (size - 1) * stride
        offsets += flat % size * stride
        flat = flat // size
    return tensor.as_strided((span,), (1,)).index_select(0, offsets.to(tensor.device))


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    # A single element may have any stride.
    a, b = (t.contiguous().as_strided((t.numel(),), (1,)) for t in (a, b))
    return bool(torch.equal(a.view(torch.uint8), b.view(torch.uint8)))
