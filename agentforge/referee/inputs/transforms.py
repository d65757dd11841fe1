"""Input transformations that expose errors which usual inputs hide.

Each is tried only if the reference is well defined: finite, and in agreement with float64.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from ..comparison.tolerance import Bound, kinds, widest
from ..workers.pytree import Leaf
from .structure import Structure, is_coarse, is_whole

Change = Callable[[torch.Tensor], torch.Tensor]

_MUCH_LESS_EXACT = 4.0
_EVERY, _PIECE = 1009, 1009 << 12
"""One element in this many is special; elements that are changed at a time."""
_HALF_STEP = 0.9 * 2.0**-13
"""Just below the least relative distance from a half-precision value to the point from which rounding goes
up."""
SHARE = 0.25
"""Share of values, or of rows, that take another one's place."""
_LARGEST = 2.0**17
"""Largest finite value that is tried, in usual units."""
_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Content:
    """A change of a slot's floating-point inputs, or of one input of any type."""

    name: str
    """Reads after "with": `inputs 64 times as large`."""
    change: Change
    only: int | None = None
    """The number of the one input that is changed; None changes all."""
    defined: Literal["finite", "nan", "infinite"] = "finite"
    """What a well-defined answer may hold: finite values; NaN too; infinities too."""
    ties: bool = False
    """Whether many elements are equal, so that an order among them can be open."""
    takes: Literal["floats", "integers", "any"] = "floats"
    """Types of tensors that are changed; booleans are no integers."""
    whole: bool = False
    """Large tensors cannot be changed by pieces."""
    timed: bool = True
    """Whether timed calls may use it: not if the reference may raise for some of its values."""
    kept: Mapping[int, Structure] = field(default_factory=dict)
    """Order or symmetry of inputs that a change must not destroy, by number."""

    def concerns(self, number: int, tensor: torch.Tensor) -> bool:
        """Whether it changes this input."""
        if not tensor.numel() or self.only not in (None, number):
            return False
        if self.takes == "integers":
            return is_whole(tensor)
        if tensor.is_complex():  # products with infinities are NaN in one right kernel and not in another
            return self.takes == "floats" and self.defined == "finite"
        return self.takes == "any" or tensor.is_floating_point()

    def apply(self, tensors: Sequence[torch.Tensor]) -> None:
        """Change a slot's tensors in place, by pieces: whole copies of large ones would cost their memory."""
        for number, tensor in enumerate(tensors):
            structure = self.kept.get(number) if self.takes == "floats" else None
            if not self.concerns(number, tensor) or (structure is not None and self.defined != "finite"):
                continue
            in_pieces = tensor.is_contiguous() and not self.whole
            for piece in tensor.view(-1).split(_PIECE) if in_pieces else [tensor]:
                wide = piece.float() if is_coarse(piece) else piece
                piece.copy_(self.change(wide))
            if structure is not None:
                tensor.copy_(structure.restored(tensor))


@dataclass(frozen=True)
class Answer:
    """What the reference gives for a content, and how exact another answer to it must be."""

    outputs: list[Leaf]
    bounds: list[Bound]
    equal: list[bool] = field(default_factory=list)
    """Whether an output is what float64 gives, to the last bit."""

    @property
    def open(self) -> bool:
        """Whether an element may as well be of another kind: finite instead of NaN, say."""
        return any(
            x.alternative is not None and not torch.equal(kinds(x.value), kinds(x.alternative))
            for x in self.outputs
        )


@dataclass(frozen=True)
class ProbeInput:
    """A transformation that some timed calls use too, so that a candidate cannot recognise checks by
    content."""

    content: Content
    bounds: list[Bound]
    """Twice what the reference's own error allows."""

    @staticmethod
    def of(content: Content, answer: Answer, usual: Sequence[Bound]) -> ProbeInput | None:
        """None if the reference's answer to another draw may be chance.

        This one's is open, or much less exact than usual, or the reference may raise for other integers.
        """
        pairs = list(zip(answer.bounds, usual, strict=True))
        less_exact = any(a.relative > _MUCH_LESS_EXACT * b.relative for a, b in pairs)
        if not content.timed or answer.open or less_exact:
            return None
        return ProbeInput(content, [widest(list(pair)).scaled(2) for pair in pairs])


def copied_rows(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A copy, and a view of it as rows along the last dimension."""
    made = tensor.clone(memory_format=torch.contiguous_format)
    return made, made.view(-1, made.shape[-1] if made.dim() else 1)


def some(value: float, chance: random.Random = _random) -> Change:
    """The value in one element of every thousand, and in at least one; which ones is random."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone(memory_format=torch.contiguous_format)
        step = max(1, min(_EVERY, tensor.numel() - 1))
        changed.view(-1)[chance.randrange(step) :: step] = value
        return changed

    return change


def _some_nan(tensor: torch.Tensor) -> torch.Tensor:
    """NaN of either sign: what one writes down is positive, and 0/0 on x86 processors is negative."""
    changed = some(math.nan)(tensor)
    flat = changed.view(-1)
    places = flat.isnan().nonzero().view(-1)
    negative = places[torch.rand(len(places)) < 0.5]
    flat[negative] = -flat[negative]
    return changed


def _some_minus_infinities(tensor: torch.Tensor) -> torch.Tensor:
    """Only where there are negative values: `x.sqrt() * x` is a right power of 1.5 for all others."""
    return some(-math.inf)(tensor) if bool((tensor < 0).any()) else tensor


def _one_large(tensor: torch.Tensor) -> torch.Tensor:
    """One element far from the others: no sample of a tensor tells that it is there."""
    changed = tensor.clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    flat[_random.randrange(flat.numel())] = 64 * flat.abs().max()
    return changed


def _hard_to_round(tensor: torch.Tensor) -> torch.Tensor:
    """Every element just above a half-precision value: errors of rounding to one do not cancel."""
    if tensor.is_complex():
        return torch.view_as_complex(_hard_to_round(torch.view_as_real(tensor)))
    if torch.finfo(tensor.dtype).bits < 32:
        return tensor
    half = tensor.half().to(tensor.dtype)
    return torch.where(torch.isfinite(half), half * (1 + _HALF_STEP), tensor)


def less_precise(tensor: torch.Tensor) -> torch.Tensor:
    """A floating-point tensor in about half of its precision, in its own dtype.

    float32 and float64 are rounded to half precision, 16-bit types to 8-bit integers with one scale per row.
    """
    if tensor.dtype in (torch.complex64, torch.complex128):
        return torch.view_as_complex(less_precise(torch.view_as_real(tensor)))
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor.half().to(tensor.dtype)
    if tensor.dtype not in (torch.float16, torch.bfloat16) or not tensor.numel():
        return tensor
    wide = tensor.float()
    scale = wide.abs().amax(-1, keepdim=True) / 127 if tensor.dim() else wide.abs() / 127
    return torch.where(scale > 0, (wide / scale).round() * scale, wide).to(tensor.dtype)


def _one_row(change: Change) -> Change:
    """The change in one row along the last dimension, or in one element of a tensor that is one row: no
    sample of rows tells that it is there."""

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        whole = tensor.clone(memory_format=torch.contiguous_format)
        width = tensor.shape[-1] if tensor.dim() else 1
        rows = whole.view(-1, width if tensor.numel() > width else 1)
        row = rows[_random.randrange(len(rows))]
        row.copy_(change(row))
        return whole

    return changed


def _up_to(largest: float) -> Change:
    """The largest value becomes this one, or as near to it as the type can have."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        highest = float(tensor.abs().max())
        kind = torch.finfo(tensor.dtype)
        aim = min(max(largest, 16 * kind.tiny), kind.max / 16)
        return tensor * (aim / highest) if 0.0 < highest < math.inf else tensor

    return change


def _outliers(tensor: torch.Tensor) -> torch.Tensor:
    """One element in a thousand is large. If all are, rounding may decide many of a reference's integers."""
    chosen = some(True)(torch.zeros(tensor.shape, dtype=torch.bool))
    return torch.where(chosen, _up_to(_LARGEST)(tensor), tensor)


def _mixed(tensor: torch.Tensor) -> torch.Tensor:
    """A few large elements among small ones: of each row, another share between 30 % and 0.3 %."""
    share = 0.3 * 10 ** (-2 * torch.rand((*tensor.shape[:-1], 1) if tensor.dim() else ()))
    return tensor * torch.where(torch.rand(tensor.shape) < share, 32.0, 0.0625).to(tensor.dtype)


def _integers(tensor: torch.Tensor) -> torch.Tensor:
    """From 1 to 4 with either sign: leaving out a zero would show nowhere."""
    signs = torch.randint(0, 2, tensor.shape).mul_(2).sub_(1)
    return torch.randint(1, 5, tensor.shape).mul_(signs).to(tensor.dtype)


LARGE = Content("inputs 64 times as large", lambda t: t * 64)
UP_TO_1024 = Content("values up to 1024", _up_to(1024.0))
SMALL = Content("inputs 64 times as small", lambda t: t / 64)
MIXED = Content("mixed magnitudes", _mixed)
SHIFTED = Content("shifted by 30", lambda t: t + 30)
NEGATED = Content("negated inputs", lambda t: -t)
HARD_TO_ROUND = Content("inputs that are hard to round", _hard_to_round)
LARGE_AND_HARD = Content("large inputs that are hard to round", lambda t: _hard_to_round(t * 64))
ONE_LARGE = Content("one large value", _one_large)
SMALL_INTEGERS = Content("small integers", _integers, ties=True)


def _a_zero_in_each_row(tensor: torch.Tensor) -> torch.Tensor:
    made, rows = copied_rows(tensor)
    rows.scatter_(1, torch.randint(rows.shape[1], (len(rows), 1)), 0)
    return made


def _equal_neighbours(tensor: torch.Tensor) -> torch.Tensor:
    """A quarter of the values are equal to the one before them in their row."""
    if not tensor.dim():
        return tensor
    return torch.where(torch.rand(tensor.shape) < SHARE, tensor.roll(1, -1), tensor)


OUTLIERS = Content("some values up to 131072", _outliers)
UNUSUAL = (
    LARGE,
    UP_TO_1024,
    Content("values up to 131072", _up_to(_LARGEST)),
    Content("one row below 2**-50", _one_row(_up_to(2.0**-50)), whole=True),
    SMALL,
    Content("zeros", torch.zeros_like, ties=True),
    Content("a zero in each row", _a_zero_in_each_row, whole=True),
    Content("some values equal to the one before", _equal_neighbours, ties=True, whole=True),
    Content("equal values", lambda t: torch.full_like(t, 0.5), ties=True),
    MIXED,
    SHIFTED,
    Content("one row shifted by 30", _one_row(lambda t: t + 30), whole=True),
    NEGATED,
    ONE_LARGE,
    Content("some NaN", _some_nan, defined="nan", ties=True),
    Content("some infinities", some(math.inf), defined="infinite", ties=True),
    Content("some minus infinities", _some_minus_infinities, defined="infinite", ties=True),
)
"""What numerical stability is tried with."""


def exposing_contents(inputs: int) -> list[Content]:
    """Contents that expose wrong answers, the most useful first."""
    found = [HARD_TO_ROUND, LARGE_AND_HARD, SMALL, NEGATED, LARGE, SHIFTED, MIXED]
    if inputs > 1:
        for number in range(inputs):
            found.append(Content(f"input {number} 64 times as large", lambda t: t * 64, only=number))
            found.append(Content(f"input {number} 64 times as small", lambda t: t / 64, only=number))
    return found
