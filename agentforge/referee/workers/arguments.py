"""Arguments as JSON: scalars, containers and dtypes in the text, tensors in a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from agentforge.schema import TargetError

from .memory.shared_memory import DTYPES, Layout, Memory, dtype_name


def encode(value: Any, place: Callable[[torch.Tensor], Layout]) -> Any:
    """Turn an argument into JSON.

    Args:
        place: called with each tensor; returns the layout of its bytes.

    Raises:
        TargetError: something else.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return {"tensor": place(value).to_json()}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, list):
        return [encode(item, place) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, place) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[encode(k, place), encode(v, place)] for k, v in value.items()]}
    raise TargetError(
        f"an argument of type {type(value).__name__} cannot be sent to a candidate; "
        "use tensors, numbers, strings, lists, tuples or dicts"
    )


def decode(value: Any, block: Memory, base: int = 0) -> Any:
    """Undo `encode`; tensors share the block's memory at `base` and above.

    A tensor that has `conj` beside its layout is the lazy conjugate of what lies there.
    """
    if isinstance(value, list):
        return [decode(item, block, base) for item in value]
    if isinstance(value, dict):
        if "tensor" in value:
            layout = Layout.from_json(value["tensor"])
            tensor = block.tensor(layout.at(layout.offset + base))
            return tensor.conj() if value.get("conj") else tensor
        if "dtype" in value:
            return DTYPES[value["dtype"]]
        if "tuple" in value:
            return tuple(decode(item, block, base) for item in value["tuple"])
        return {decode(k, block, base): decode(v, block, base) for k, v in value["dict"]}
    return value


def bind(arguments: Any, block: Memory, base: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of one slot."""
    positional, named = arguments["args"], arguments["kwargs"]
    return (
        tuple(decode(item, block, base) for item in positional),
        {name: decode(item, block, base) for name, item in named.items()},
    )


def layouts(value: Any) -> list[Layout]:
    """Layouts of all tensors in encoded arguments, in order."""
    if isinstance(value, list):
        return [layout for item in value for layout in layouts(item)]
    if isinstance(value, dict):
        if "tensor" in value:
            return [Layout.from_json(value["tensor"])]
        if "dtype" in value:
            return []
        return [layout for item in value.values() for layout in layouts(item)]
    return []


def numbers(value: Any) -> list[int | float]:
    """Numbers in encoded arguments, in order; those of tensors and layouts are left out."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [value]
    if isinstance(value, dict):
        value = [] if "tensor" in value else list(value.values())
    return [x for item in value for x in numbers(item)] if isinstance(value, list) else []
