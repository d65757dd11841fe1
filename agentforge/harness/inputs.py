"""Fresh inputs for every call, from a workload's specification or from the reference's own `get_inputs()`.

Small inputs are drawn anew each time. Large ones are mixed from a base draw: a convex combination of the
draw with itself rolled along the first dimension, by a random weight and a random roll, with some rows
exchanged. A convex combination keeps what real inputs keep (ranges, rows that sum to one, masks of zeros
and minus infinities), is unique in every element, and costs one pass over memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from agentforge.schema import Distribution, ScalarInput, TensorInput, Workload

from .baseline import Placer
from .memory import DTYPES, Block, Layout, contiguous_strides
from .values import encode, layouts

FRESH_BYTES = 1 << 20
"""Inputs up to this size are drawn anew for each call."""
_SLOT_BUDGET = 256 << 20
_DISCRETE = 16


@dataclass(frozen=True)
class Arguments:
    """Encoded arguments of one slot."""

    encoded: dict[str, Any]
    slot_bytes: int


def arguments_of(workload: Workload) -> Arguments:
    """Arguments of a workload that gives its inputs by specification."""
    placer = Placer()
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for spec in workload.inputs:
        if isinstance(spec, ScalarInput):
            value = spec.value
        else:
            layout = Layout(spec.shape, spec.dtype.value, spec.strides or contiguous_strides(spec.shape))
            value = encode(_Placeholder(layout).tensor(), placer)
        if spec.keyword:
            kwargs[spec.name] = value
        else:
            args.append(value)
    return Arguments({"args": args, "kwargs": kwargs}, placer.nbytes)


@dataclass(frozen=True)
class _Placeholder:
    layout: Layout

    def tensor(self) -> torch.Tensor:
        """A tensor of this layout that takes no memory."""
        return torch.empty_strided(
            self.layout.shape, self.layout.strides, dtype=DTYPES[self.layout.dtype], device="meta"
        )


def draw(target: torch.Tensor, distribution: Distribution, generator: torch.Generator) -> None:
    """Fill a tensor from a distribution, in place."""
    kind, a, b = distribution.kind, distribution.a, distribution.b
    if kind == "constant":
        target.fill_(a)
    elif kind == "bernoulli":
        target.copy_(torch.rand(target.shape, generator=generator) < a)
    elif kind == "integers":
        target.copy_(torch.randint(int(a), max(int(b), int(a) + 1), target.shape, generator=generator))
    elif kind == "uniform":
        target.copy_(torch.rand(target.shape, generator=generator) * (b - a) + a)
    elif target.is_complex():
        target.copy_(torch.randn(target.shape, generator=generator, dtype=target.dtype) * b + a)
    else:
        values = torch.randn(target.shape, generator=generator).mul_(b).add_(a)
        target.copy_(values)


class Inputs:
    """The input slots of one workload in shared memory, and what fills them.

    Args:
        workload: its specification says the distributions where `source` is `spec`.
        arguments: encoded arguments of a slot.
        draw_reference: gives the tensors of `get_inputs()` under a seed, where `source` is `reference`.
    """

    def __init__(
        self,
        workload: Workload,
        arguments: Arguments,
        draw_reference: Callable[[int], list[torch.Tensor]] | None,
    ) -> None:
        self.arguments = arguments
        self.slot_bytes = arguments.slot_bytes
        self.slots = max(2, min(7, _SLOT_BUDGET // max(self.slot_bytes, 1)))
        self.block = Block.create("inputs", self.slot_bytes * self.slots)
        # Only this process's mapping can write: a candidate that maps it can but read.
        self.block.seal_writes()
        self.layouts = layouts(arguments.encoded)
        tensors = [i for i in workload.inputs if isinstance(i, TensorInput)]
        self._specs = tensors if workload.source == "spec" else None
        self._draw_reference = draw_reference
        self._generator = torch.Generator()
        self._bases: list[list[torch.Tensor]] = []
        self._floats = False
        self._random = secrets.SystemRandom()

    def tensors(self, slot: int) -> list[torch.Tensor]:
        """The tensors of a slot, sharing its memory."""
        return [self.block.tensor(x.at(x.offset + slot * self.slot_bytes)) for x in self.layouts]

    def fill(self, slot: int) -> None:
        """Put content into a slot that no call has seen before."""
        if self.slot_bytes <= FRESH_BYTES:
            self.redraw(slot)
            return
        if not self._bases:
            self.rebase(slot)
        for target, bases in zip(self.tensors(slot), self._bases, strict=True):
            self._mix(target, bases)

    def redraw(self, slot: int) -> None:
        """Draw a slot anew from its distributions."""
        if self._draw_reference is not None and self._specs is None:
            drawn = self._draw_reference(secrets.randbits(60))
            for target, tensor in zip(self.tensors(slot), drawn, strict=True):
                target.copy_(tensor)
            return
        self._generator.manual_seed(secrets.randbits(60))
        for target, spec in zip(self.tensors(slot), self._specs or [], strict=True):
            draw(target, spec.distribution, self._generator)

    def rebase(self, slot: int) -> None:
        """Draw what later content is mixed from."""
        self.redraw(slot)
        self._bases = [[t.clone()] for t in self.tensors(slot)]
        # Whole draws of integers keep their structure (offsets, sorted ids) where floats vary beside them.
        self._floats = any(_mixable(bases[0]) for bases in self._bases)
        if all(_mixable(bases[0]) and bases[0].shape[0] > 1 for bases in self._bases):
            return
        self.redraw(slot)
        for bases, tensor in zip(self._bases, self.tensors(slot), strict=True):
            if not (_mixable(bases[0]) and bases[0].shape[0] > 1):
                bases.append(tensor.clone())

    def _mix(self, target: torch.Tensor, bases: list[torch.Tensor]) -> None:
        base = bases[0]
        weight = self._random.uniform(0.15, 0.85)
        if len(bases) == 1:
            self._exchange_rows(base)
            rows = base.shape[0]
            roll = self._random.randrange(1, rows)
            torch.lerp(base[: rows - roll], base[roll:], weight, out=target[: rows - roll])
            torch.lerp(base[rows - roll :], base[:roll], weight, out=target[rows - roll :])
        elif _mixable(base):
            torch.lerp(base, bases[1], weight, out=target)
        elif base.numel() > 1 and not self._floats:
            self._generator.manual_seed(secrets.randbits(60))
            chosen = torch.rand(base.shape, generator=self._generator) < weight
            target.copy_(torch.where(chosen, base, bases[1]))
        else:
            target.copy_(self._random.choice(bases))

    def _exchange_rows(self, base: torch.Tensor) -> None:
        first, second = self._random.randrange(base.shape[0]), self._random.randrange(base.shape[0])
        held = base[first].clone()
        base[first] = base[second]
        base[second] = held

    def transform(self, slot: int, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Apply a function to every floating-point input of a slot, in place."""
        for tensor in self.tensors(slot):
            if tensor.is_floating_point():
                tensor.copy_(change(tensor))

    def close(self) -> None:
        self._bases = []
        self.block.close()


def _mixable(tensor: torch.Tensor) -> bool:
    """Floating-point values that are not a few levels (a mask, one-hot rows)."""
    if (
        tensor.dim() == 0
        or tensor.numel() == 0
        or not tensor.is_floating_point()
        or tensor.element_size() == 1
    ):
        return False
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, flat.numel() // 4096)]
    return int(torch.unique(sample).numel()) > min(_DISCRETE, sample.numel() - 1)
