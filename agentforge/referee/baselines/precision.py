"""Copies of a model and of its arguments in single and in double precision."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode, _pop_mode_temporarily
from torch.utils import _pytree as pytree

from agentforge.problems.copies import copied

from ..workers.server import Slot
from .dispatch import is_integer

_OVERRIDDEN = torch.overrides.has_torch_function
_SINGLE = {torch.float64: torch.float32, torch.complex128: torch.complex64}
FINER = torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
"""Rounding in double precision, as a part of that in single precision."""


def doubled(slot: Slot) -> Slot:
    """Copies of arguments, numbers with a fraction in double precision."""
    found: Slot = pytree.tree_map_only(torch.Tensor, lambda t: t.to(_wider(t), copy=True), slot)
    return found


def wide(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of a model in double precision, with its complex weights: `Module.double` leaves those."""
    return copied(module)._apply(lambda t: t.to(_wider(t)))


def _wider(tensor: torch.Tensor) -> torch.dtype:
    if tensor.is_complex():
        return torch.complex128
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def in_single(module: torch.nn.Module, slot: Slot) -> tuple[torch.nn.Module, Slot]:
    """Copies of a model and of its arguments, with single for double precision."""

    def single(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(_SINGLE.get(tensor.dtype, tensor.dtype), copy=True)

    return copied(module)._apply(single), pytree.tree_map_only(torch.Tensor, single, slot)


def is_double(value: Any) -> bool:
    """Whether it is a tensor in double precision."""
    return isinstance(value, torch.Tensor) and value.dtype in _SINGLE


class default_dtype:  # noqa: N801 - reads as a function
    """Default dtype for the duration, so that constants the reference makes have it too.

    Random numbers are those of the usual default: a seeded generator gives others for another dtype.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype, self._before = dtype, torch.get_default_dtype()
        self._draws = _DrawnAs(self._before)

    def __enter__(self) -> None:
        torch.set_default_dtype(self._dtype)
        self._draws.__enter__()

    def __exit__(self, *of: Any) -> None:
        self._draws.__exit__(*of)
        torch.set_default_dtype(self._before)


def _overridden(args: Iterable[Any]) -> bool:
    """What `torch.overrides.has_torch_function` says without the mode."""
    with _pop_mode_temporarily() if isinstance(_get_current_function_mode(), _DrawnAs) else nullcontext():
        return _OVERRIDDEN(args)


class _DrawnAs(TorchFunctionMode):
    """Draws random numbers in a dtype, for callers that name none, and gives them in the default one.

    It hides from the fast paths of attention, which torch leaves out under any mode: with a mask of padding
    they give zeros where the usual ones compute.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __enter__(self) -> Self:
        torch.overrides.has_torch_function = _overridden
        super().__enter__()
        return self

    def __exit__(self, *of: Any) -> None:
        super().__exit__(*of)
        torch.overrides.has_torch_function = _OVERRIDDEN

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in (torch.rand, torch.randn) and given.get("dtype") is None and given.get("out") is None:
            return func(*args, **given | {"dtype": self._dtype}).to(torch.get_default_dtype())
        return func(*args, **given)


def nudged(value: Any, units: float = 1.0) -> Any:
    """A tensor moved by half a unit in the last place, or by half of `units` if its type is not coarse."""
    if isinstance(value, torch.Tensor) and not is_integer(value) and value.itemsize > 1:
        noise = (torch.rand(value.shape) - 0.5) * (units if value.itemsize > 2 else 1.0)
        return (value * (1 + noise.to(value) * torch.finfo(value.dtype).eps)).to(value.dtype)
    return value
