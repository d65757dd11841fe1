"""Describe real tensors as `TensorInput`: shape, dtype, strides, and a distribution to draw like them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from agentforge.schema import Distribution, DType, ScalarInput, TensorInput, UnsupportedTargetError

_SPREAD = 0.1
_SAMPLE = 1 << 20
_FEW = 16
"""Largest distance of whole floating-point numbers that are drawn as integers: masks, counts, labels."""


def dtype_of(dtype: torch.dtype) -> DType:
    """Our name of a torch dtype.

    Raises:
        UnsupportedTargetError: a dtype that has no name here (quantised, complex128).
    """
    try:
        return DType(str(dtype).removeprefix("torch."))
    except ValueError as error:
        raise UnsupportedTargetError(
            f"tensors of dtype {dtype} are not supported; convert them first"
        ) from error


def describe_tensor(name: str, tensor: torch.Tensor, *, keyword: bool = False) -> TensorInput:
    """Shape, dtype, strides (None if contiguous) and learned distribution of a tensor."""
    return TensorInput(
        name=name,
        shape=tuple(tensor.shape),
        dtype=dtype_of(tensor.dtype),
        strides=None if tensor.is_contiguous() else tuple(tensor.stride()),
        distribution=distribution_of(tensor),
        keyword=keyword,
    )


def distribution_of(tensor: torch.Tensor) -> Distribution:
    """A distribution whose draws are like the tensor's values.

    Integers keep their range, without a single negative value, which marks padding (an `ignore_index` such as
    -100). A few whole numbers in a floating-point type, such as a mask's, stay whole. Values that are never
    negative stay so. A constant of more than one element gets a spread of 10%, so that a kernel that ignores
    weights at their initial 0 and 1 does not pass. For the same reason a mask that is neither always true
    nor always false has at least 1% of either.
    """
    flat = tensor.detach().reshape(-1)
    if flat.numel() > _SAMPLE:
        flat = flat[:: flat.numel() // _SAMPLE + 1]
    if flat.numel() == 0:
        return Distribution(kind="constant", a=0.0)
    if flat.dtype == torch.bool:
        share = flat.float().mean().item()
        varies = 0 < share < 1
        return Distribution(kind="bernoulli", a=min(max(_round(share), 0.01), 0.99) if varies else share)
    if not (flat.is_floating_point() or flat.is_complex()):
        low, high = int(tensor.min()), int(tensor.max())
        if low < 0 <= high and flat.dtype == torch.int64:
            following = int(tensor[tensor != low].min())
            low = following if following >= 0 else low
        return Distribution(kind="integers", a=low, b=high + 1)
    values = (torch.view_as_real(flat.resolve_conj()) if flat.is_complex() else flat).double().reshape(-1)
    values = values[torch.isfinite(values)]
    if flat.is_complex() and values.numel():
        return _normal(values)  # of the others no draw has an imaginary part
    return _floating(values, single=tensor.numel() == 1, narrow=flat.itemsize == 1)


def _floating(values: torch.Tensor, *, single: bool, narrow: bool) -> Distribution:
    if values.numel() == 0:
        return Distribution(kind="constant", a=0.0)
    low, high = values.min().item(), values.max().item()
    if low == high:
        if single:
            return Distribution(kind="constant", a=low)
        spread = _SPREAD * abs(low) if low else _SPREAD
        return Distribution(kind="uniform", a=_round(low - spread), b=_round(low + spread))
    if high - low <= _FEW and not narrow and bool((values == values.round()).all()):
        return Distribution(kind="integers", a=low, b=high + 1)  # torch draws none in 8-bit floats
    if low >= 0:
        return Distribution(kind="uniform", a=_round(low), b=_round(high))
    return _normal(values)


def _normal(values: torch.Tensor) -> Distribution:
    mean, std = values.mean().item(), values.std().item() if values.numel() > 1 else 0.0
    if abs(mean) < 0.05 * std:
        mean = 0.0  # sampling noise around zero would make every layer's definition another one
    return Distribution(kind="normal", a=_round(mean), b=_round(std) or 1.0)


def _round(value: float) -> float:
    """Two significant digits: enough for a distribution, and alike layers stay alike."""
    return float(f"{value:.2g}")


def flatten_tensors(value: Any, name: str = "output") -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors in nested lists, tuples, dicts and dataclass-like mappings, each with a dotted name."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from flatten_tensors(item, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flatten_tensors(item, f"{name}.{index}")


def to_device(value: Any, device: torch.device) -> Any:
    """Copy of nested containers with their tensors moved; pytrees, such as named tuples, keep their type."""

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.to(device)
        if isinstance(leaf, Mapping) and any(t.device != device for _, t in flatten_tensors(leaf)):
            made: Any = type(leaf)  # one that torch does not know, such as UserDict
            return made({key: to_device(item, device) for key, item in leaf.items()})
        return leaf

    return tree_map(moved, value)


def _refusal(name: str, value: Any) -> str:
    """What to do with a tuple or mapping that other processes get as a plain one; empty without any."""
    plain = isinstance(value, dict) or type(value) in (tuple, torch.Size)
    if isinstance(value, (tuple, Mapping)) and not plain:
        given, kind = type(value).__name__, "tuple" if isinstance(value, tuple) else "dict"
        return f"input {name!r} is a {given}, and other processes get a plain {kind}: make it one"
    parts = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, (list, tuple)) else parts
    return next(filter(None, (_refusal(f"{name}.{key}", item) for key, item in items)), "")


def describe_arguments(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[TensorInput | ScalarInput, ...]:
    """Describe the arguments of a forward.

    Args:
        names: parameter names for `args`, in order; missing ones become `arg3`.

    Returns:
        A description of each tensor, number, string and None, those in containers with dotted names.

    Raises:
        UnsupportedTargetError: an argument is or contains something else, or a container of a class that
            other processes do not get, such as a named tuple.
    """
    padded = [names[i] if i < len(names) else f"arg{i}" for i in range(len(args))]
    found: list[TensorInput | ScalarInput] = []
    for name, value, keyword in [
        *((n, v, False) for n, v in zip(padded, args, strict=True)),
        *((n, v, True) for n, v in kwargs.items()),
    ]:
        if refusal := _refusal(name, value):
            raise UnsupportedTargetError(refusal)
        found += _described(name, value, keyword)
    return tuple(found)


def _described(name: str, value: Any, keyword: bool) -> Iterator[TensorInput | ScalarInput]:
    if isinstance(value, torch.Tensor):
        yield describe_tensor(name, value, keyword=keyword)
    elif value is None or isinstance(value, (bool, int, float, str)):
        yield ScalarInput(name=name, value=value, keyword=keyword)
    elif isinstance(value, (Mapping, list, tuple)):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _described(f"{name}.{key}", item, keyword)
    else:
        raise UnsupportedTargetError(
            f"input {name!r} is a {type(value).__name__}; "
            "pass tensors, numbers, strings, None, or lists, tuples or dicts of those"
        )
