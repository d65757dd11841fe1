"""Fresh inputs for every call, from a workload's specification or from the reference's own `get_inputs()`.

Small inputs are drawn anew each time. Large ones are mixed from a base draw: a convex combination of the
draw with itself rolled along the first dimension, by random weights and a random roll, with some rows
exchanged. A convex combination keeps what real inputs keep (ranges, rows that sum to one, masks of zeros
and minus infinities), is unique in every element, and costs one pass over memory. Its weights differ from
element to element (not of probabilities): no mixture of known answers is the answer of a linear operator.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from agentforge.schema import Distribution, ScalarInput, TensorInput, Workload

from .baseline import Placer
from .memory import DTYPES, Block, Layout, contiguous_strides
from .recipes import Blended, Chosen, Draw, Given, Recipe, Rolled, Rows, mixing_weights, stored, write
from .values import encode, layouts

FRESH_BYTES = 1 << 20
"""Inputs up to this size are drawn anew for each call."""
_LARGE_BYTES = 64 << 20
_DRAWN_AT_A_TIME = 1 << 20


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
        for part in target.view(-1).split(_DRAWN_AT_A_TIME) if target.is_contiguous() else [target]:
            part.copy_(torch.randn(part.shape, generator=generator).mul_(b).add_(a))


class Inputs:
    """The input slots of one workload, and what fills them.

    A content lies in a file of its own, which is sealed when it is handed to a worker and never written to
    with other content: whoever has it has seen what one call asks and nothing of any other.

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
        self.slots = 3 if self.slot_bytes <= _LARGE_BYTES else 2
        self._contents = [self._room() for _ in range(self.slots)]
        self.layouts = layouts(arguments.encoded)
        tensors = [i for i in workload.inputs if isinstance(i, TensorInput)]
        self._specs = tensors if workload.source == "spec" else None
        self._draw_reference = draw_reference
        self._generator = torch.Generator()
        self._bases: list[list[Draw]] = []
        self._floats = False
        self._random = secrets.SystemRandom()

    def copies(self, slot: int) -> list[torch.Tensor]:
        """The tensors of a slot as our own, past the mapping: large ones are not resident afterwards."""
        return [self._contents[slot].read(layout) for layout in self.layouts]

    def tensors(self, slot: int) -> list[torch.Tensor]:
        """The tensors of a slot, sharing its memory."""
        return [self._contents[slot].tensor(layout) for layout in self.layouts]

    @property
    def nbytes(self) -> int:
        """Of all slots."""
        return self.slot_bytes * self.slots

    def descriptor(self, slot: int) -> int:
        """The file with a slot's content, to be handed to a worker, which can but read it."""
        self._contents[slot].seal_writes()  # our own mapping can still write
        return self._contents[slot].fd

    def make(self, recipe: Recipe) -> Block:
        """A content outside of any slot; it lives as long as the caller or a slot holds it."""
        content = self._room()
        for made, layout in zip(recipe, self.layouts, strict=True):
            write(content, layout, made)
        return content

    @contextmanager
    def kept(self, slot: int) -> Iterator[None]:
        """Whatever a slot is given meanwhile, it has its content again afterwards."""
        before = self._contents[slot]
        try:
            yield
        finally:
            self._contents[slot] = before

    def give(self, slot: int, tensors: Sequence[torch.Tensor]) -> None:
        """Let a slot have these."""
        self.apply([Given(tensor) for tensor in tensors], slot)

    def place(self, content: Block, slot: int) -> None:
        """Let a slot have a content that was made before."""
        self._contents[slot] = content

    def _room(self) -> Block:
        return Block.create("inputs", self.slot_bytes)

    def fill(self, slot: int) -> None:
        """Put content into a slot that no call has seen before."""
        self.apply(self.prepare(), slot)

    def prepare(self) -> Recipe:
        """Choose content that no call has seen before, without putting it where a worker could see it.

        Recipes that were prepared one after the other can be applied in any order and more than once,
        until the next one is prepared.
        """
        if self.slot_bytes <= FRESH_BYTES:
            return [Given(tensor) for tensor in self._draw()]
        if not self._bases:
            self.rebase()
        return [self._mixture(bases) for bases in self._bases]

    def apply(self, recipe: Recipe, slot: int) -> None:
        """Give a slot the content of a recipe."""
        self.place(self.make(recipe), slot)

    def _draw(self) -> list[torch.Tensor]:
        """Tensors of our own, drawn anew from the distributions."""
        if self._draw_reference is not None and self._specs is None:
            return self._draw_reference(secrets.randbits(60))
        self._generator.manual_seed(secrets.randbits(60))
        drawn = []
        for layout, spec in zip(self.layouts, self._specs or [], strict=True):
            tensor = torch.empty(layout.shape, dtype=DTYPES[layout.dtype])
            draw(tensor, spec.distribution, self._generator)
            drawn.append(tensor)
        return drawn

    def rebase(self) -> None:
        """Draw what later content is mixed from."""
        self._bases = [[base] for base in stored(self._draw())]
        # Whole draws of integers keep their structure (offsets, sorted ids) where floats vary beside them.
        self._floats = any(bases[0].mixable for bases in self._bases)
        if all(bases[0].rollable for bases in self._bases):
            return
        for bases, other in zip(self._bases, stored(self._draw()), strict=True):
            if not bases[0].rollable:
                bases.append(other)

    def _mixture(self, bases: list[Draw]) -> Rows:
        base = bases[0]
        if base.mixable:
            self._generator.manual_seed(secrets.randbits(60))
            weights = mixing_weights(self._random.uniform(0.15, 0.85), base.spread, self._generator)
            if len(bases) > 1:
                return Blended(base, bases[1], weights)
            number = base.shape[0]
            base.exchange(self._random.randrange(number), self._random.randrange(number))
            return Rolled(base, weights, self._random.randrange(1, number))
        if base.numel > 1 and not self._floats:
            return Chosen(base, bases[1], self._random.uniform(0.15, 0.85), secrets.randbits(60))
        return self._random.choice(bases)

    def close(self) -> None:
        self._bases = []
        for content in self._contents:
            content.close()
