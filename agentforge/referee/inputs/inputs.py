"""Fresh inputs for every call, from a workload's specification or from the reference's `get_inputs()`.

Small inputs are drawn anew. Large ones are convex combinations of a base draw with itself rolled along the
first dimension, with weights that differ by element: no mixture of known answers answers a linear operator.
Rows of norm one get it back, infinities stay, integers and tensors of few values are rearranged. If two draws
share what neither keeps (an order, symmetry), or if a few integers are drawn from thousands (a seed), every
content is drawn anew.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import torch

from agentforge.schema import Distribution, TensorInput, Workload

from ..baselines.sealed_weights import Placer
from ..workers.arguments import encode, layouts, numbers
from ..workers.memory.shared_memory import DTYPES, Block, Layout, contiguous_strides
from .mixing import Blended, Draw, Given, Recipe, Rolled, Rows, Weights, between, rearranged, stored, write
from .structure import Structure, structure_of
from .transforms import Content

FRESH_BYTES = 1 << 20
"""Inputs up to this size are drawn anew for each call."""
_LARGE_BYTES = 64 << 20
_DRAWN_AT_A_TIME = 1 << 20
_QUICK_S = 0.05
"""Seconds that a draw may take in place of tensors that are only rearranged."""
_A_FEW, _FAR = 16, 4096
"""Integers in a tensor, at most, that count as parameters such as seeds; two draws of one differ by more."""


@dataclass(frozen=True)
class Arguments:
    """Encoded arguments of one slot."""

    encoded: dict[str, Any]
    slot_bytes: int


def arguments_of(workload: Workload) -> Arguments:
    """Arguments of a workload that gives its inputs by specification."""
    placer = Placer()

    def placed(spec: TensorInput) -> Any:
        layout = Layout(spec.shape, spec.dtype.value, spec.strides or contiguous_strides(spec.shape))
        return encode(_Placeholder(layout).tensor(), placer)

    args, kwargs = workload.arguments(placed)
    return Arguments({"args": list(args), "kwargs": kwargs}, placer.nbytes)


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
    """The input slots of one workload. Contents stay in this process; a worker gets one for one call.

    Args:
        draw_reference: gives the tensors of `get_inputs()` under a seed, if `source` is `reference`.
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
        self._structures: list[Structure] | None = None
        self.anew = False
        """Every content is drawn anew, however large."""
        self.order_counts: frozenset[int] = frozenset()
        """Numbers of inputs that are always sorted and must be, see `orders_that_count`."""
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

    def content(self, slot: int) -> Block:
        """A slot's content, for the copy that a worker sees."""
        return self._contents[slot]

    def make(self, recipe: Recipe) -> Block:
        """A content outside of any slot; it lives as long as the caller or a slot keeps it."""
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
        return Block.create("content", self.slot_bytes)

    def fill(self, slot: int) -> None:
        """Put content into a slot that no call has seen before."""
        self.apply(self.prepare(), slot)

    def prepare(self) -> Recipe:
        """Choose content that no call has seen before, without showing it to a worker.

        Recipes prepared in a row can be applied in any order and repeatedly, until the next `prepare`.
        """
        structures = self.structures
        if self.anew:
            drawn = self.drawn()
            return stored(drawn) if self.slot_bytes > FRESH_BYTES else [Given(t) for t in drawn]
        return [self._content(*of) for of in zip(self._bases, structures, strict=True)]

    def apply(self, recipe: Recipe, slot: int) -> None:
        """Give a slot the content of a recipe."""
        self.place(self.make(recipe), slot)

    def drawn(self) -> list[torch.Tensor]:
        """Tensors of our own, drawn anew from the distributions or by `get_inputs()`."""
        if self._draw_reference is not None and self._specs is None:
            return self._draw_reference(secrets.randbits(60))
        self._generator.manual_seed(secrets.randbits(60))
        drawn = []
        for layout, spec in zip(self.layouts, self._specs or [], strict=True):
            tensor = torch.empty(layout.shape, dtype=DTYPES[layout.dtype])
            draw(tensor, spec.distribution, self._generator)
            drawn.append(tensor)
        return drawn

    @property
    def structures(self) -> list[Structure]:
        """What two draws of each tensor have in common."""
        if self._structures is None:
            self._structures = self._examine()
        return self._structures

    def fitted(self, content: Content) -> Content:
        """A content that keeps the order and the symmetry of these inputs."""
        kept = {
            number: structure
            for number, structure in enumerate(self.structures)
            if structure.mixable
            and (structure.symmetric or (structure.order is not None and number in self.order_counts))
        }
        return replace(content, kept=kept)

    def _examine(self) -> list[Structure]:
        """Draw twice: contents are made from these draws, and keep what they have in common."""
        drawn, structures, seconds = [], [], inf
        for _ in range(2):
            begin = time.perf_counter()
            tensors = self.drawn()
            seconds = min(seconds, time.perf_counter() - begin)
            structures.append([structure_of(t) for t in tensors])
            drawn.append(stored(tensors))
        pairs = [list(pair) for pair in zip(*drawn, strict=True)]
        shared = [
            one.shared(other, equal=bases[0].equals(bases[1]))
            for one, other, bases in zip(*structures, pairs, strict=True)
        ]
        varying = [s for s in shared if not s.constant]
        small = self.slot_bytes <= FRESH_BYTES
        # Rearranged rows can be known again: by their values, or by what they have in common. If a draw
        # takes long, unusual contents among timed calls tell, up to some size.
        most = FRESH_BYTES if seconds <= _QUICK_S else _LARGE_BYTES
        rearranged_only = [
            x.nbytes > most and not s.mixable and not s.constant
            for x, s in zip(self.layouts, shared, strict=True)
        ]
        # Of a few integers, two draws would be all that a call ever sees, and answers to them could be kept.
        seeds = any(_far_apart(*bases) for bases in pairs)
        self.anew |= bool(varying) and (
            small or seeds or any(rearranged_only) or any(s.fragile for s in varying)
        )
        if not self.anew:
            for bases, structure in zip(pairs, shared, strict=True):
                if structure.constant or _rolls(bases[0], structure):
                    del bases[1]
            self._bases = pairs
        return shared

    def _content(self, bases: list[Draw], structure: Structure) -> Rows:
        """New content for one tensor from its draws."""
        base = bases[0]
        if not base.shape and len(bases) > 1:
            return between(base, bases[1], self._random.random())
        if not structure.mixable or (structure.constant and (structure.fragile or len(base.shape) == 0)):
            return rearranged(bases, structure, secrets.randbits(60))
        self._generator.manual_seed(secrets.randbits(60))
        weights = Weights.drawn(self._random.uniform(0.15, 0.85), self._generator)
        if not _rolls(base, structure):
            return Blended(base, bases[-1], weights, structure)
        number = base.shape[0]
        base.exchange(self._random.randrange(number), self._random.randrange(number))
        return Rolled(base, weights, self._random.randrange(1, number), structure)

    def close(self) -> None:
        self._bases = []
        for content in self._contents:
            content.close()


def drawn_numbers(one: Arguments, draw: Callable[[], Arguments]) -> bool:
    """Whether Python numbers of two draws differ: whole ones by thousands, others at all.

    Args:
        draw: makes the other draw, which is needed only if there are numbers.
    """
    found = numbers(one.encoded)
    pairs = zip(found, numbers(draw().encoded), strict=False) if found else ()
    return any(abs(a - b) > (_FAR if isinstance(a, int) else 0) for a, b in pairs)


def _far_apart(one: Draw, other: Draw) -> bool:
    """Whether two draws of a few integers differ by thousands, so that more values occur."""
    if not 0 < one.numel <= _A_FEW:
        return False
    a, b = (draw.rows(0, draw.shape[0] if draw.shape else 1) for draw in (one, other))
    if a.is_floating_point() or a.is_complex():
        return False
    return bool(((a.double() - b.double()).abs() > _FAR).any())


def _rolls(base: Draw, structure: Structure) -> bool:
    """Whether a draw can be mixed with its own rows."""
    return structure.mixable and base.shape[0] > 1
