"""Other contents for the same task: inputs changed so that errors show which the usual ones hide.

Each is tried only where the reference is well defined: where it agrees with its own float64 computation, in
which values are finite too. What a reference makes of the rest (zero by zero, a cancelled sum) is chance.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch

from .leaves import Leaf
from .party import PartyFailure, trusted
from .tolerance import Bound, Exactness, widest

if TYPE_CHECKING:
    from .bench import Bench, Course

Change = Callable[[torch.Tensor], torch.Tensor]

_ILL_CONDITIONED = 1e-2
"""Relative error of a reference against float64 beyond which its answer is chance."""
_MUCH_LESS_EXACT = 4.0
_EVERY, _PIECE = 1009, 1009 << 12
"""One element in so many is special; elements that are changed at a time."""
_HALF_STEP = 0.9 * 2.0**-13
"""Just below the least relative distance from a half-precision value to where rounding goes up."""
_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Content:
    """A change of a slot's floating-point inputs."""

    name: str
    """Reads after "with": `inputs 64 times as large`."""
    change: Change
    only: int | None = None
    """The number of the one input that is changed; None changes all."""
    defined: Literal["finite", "nan", "infinite"] = "finite"
    """What a well-defined answer may hold: finite values; NaN too; infinities too."""

    def apply(self, tensors: Sequence[torch.Tensor]) -> None:
        """Change a slot's tensors in place, by pieces: whole copies of large ones would cost their memory."""
        for number, tensor in enumerate(tensors):
            if tensor.is_floating_point() and tensor.numel() and self.only in (None, number):
                pieces = tensor.view(-1).split(_PIECE) if tensor.is_contiguous() else [tensor]
                for piece in pieces:
                    piece.copy_(self.change(piece))


@dataclass(frozen=True)
class Answer:
    """What the reference gives for a content, and how exact another answer to it must be."""

    outputs: list[Leaf]
    bounds: list[Bound]
    equal: list[bool] = field(default_factory=list)
    """Whether an output is what float64 gives, to the last bit."""


@dataclass(frozen=True)
class Unusual:
    """A content that is asked for among the usual ones, so that a call is not known by what it asks."""

    content: Content
    bounds: list[Bound]
    """Twice what the reference's own error allows."""

    @staticmethod
    def of(content: Content, answer: Answer, usual: Sequence[Bound]) -> Unusual | None:
        """None where the reference is much less exact than usually: its next answer may be chance."""
        if content.defined != "finite" or any(
            a.relative > _MUCH_LESS_EXACT * b.relative for a, b in zip(answer.bounds, usual, strict=True)
        ):
            return None
        return Unusual(
            content, [widest(list(pair)).scaled(2) for pair in zip(answer.bounds, usual, strict=True)]
        )


def _some(value: float) -> Change:
    """The value in one element of every thousand, and in at least one; nobody can guess which."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone(memory_format=torch.contiguous_format)
        step = max(1, min(_EVERY, tensor.numel() - 1))
        changed.view(-1)[_random.randrange(step) :: step] = value
        return changed

    return change


def _one_large(tensor: torch.Tensor) -> torch.Tensor:
    """One element far from the others: no sample of a tensor tells that it is there."""
    changed = tensor.clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    flat[_random.randrange(flat.numel())] = 64 * flat.abs().max()
    return changed


def _hard_to_round(tensor: torch.Tensor) -> torch.Tensor:
    """Every element just above a half-precision value: errors of rounding to one do not cancel."""
    if torch.finfo(tensor.dtype).bits < 32:
        return tensor
    half = tensor.half().to(tensor.dtype)
    return torch.where(torch.isfinite(half), half * (1 + _HALF_STEP), tensor)


def _mixed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * torch.where(torch.rand(tensor.shape) < 0.1, 32.0, 0.25).to(tensor.dtype)


def _integers(tensor: torch.Tensor) -> torch.Tensor:
    """From 1 to 4 with either sign: leaving out a zero would show nowhere."""
    signs = torch.randint(0, 2, tensor.shape).mul_(2).sub_(1)
    return torch.randint(1, 5, tensor.shape).mul_(signs).to(tensor.dtype)


LARGE = Content("inputs 64 times as large", lambda t: t * 64)
SMALL = Content("inputs 64 times as small", lambda t: t / 64)
MIXED = Content("mixed magnitudes", _mixed)
SHIFTED = Content("shifted by 30", lambda t: t + 30)
NEGATED = Content("negated inputs", lambda t: -t)
HARD_TO_ROUND = Content("inputs that are hard to round", _hard_to_round)
LARGE_AND_HARD = Content("large inputs that are hard to round", lambda t: _hard_to_round(t * 64))
ONE_LARGE = Content("one large value", _one_large)
SMALL_INTEGERS = Content("small integers", _integers)

UNUSUAL = (
    LARGE,
    SMALL,
    Content("zeros", torch.zeros_like),
    Content("equal values", lambda t: torch.full_like(t, 0.5)),
    MIXED,
    SHIFTED,
    NEGATED,
    ONE_LARGE,
    Content("some NaN", _some(math.nan), defined="nan"),
    Content("some infinities", _some(math.inf), defined="infinite"),
)
"""What numerical stability is tried with."""


def sharper(inputs: int) -> list[Content]:
    """What makes a wrong answer show, the most useful first.

    Args:
        inputs: how many tensors a slot has.
    """
    found = [HARD_TO_ROUND, LARGE_AND_HARD, SMALL, NEGATED, LARGE, SHIFTED, MIXED]
    if inputs > 1:
        for number in range(inputs):
            found.append(Content(f"input {number} 64 times as large", lambda t: t * 64, only=number))
            found.append(Content(f"input {number} 64 times as small", lambda t: t / 64, only=number))
    return found


def right_answer(bench: Bench, course: Course, content: Content) -> Answer | None:
    """The reference's answer to what slot 0 holds; None where it is not well defined there.

    Raises:
        HarnessError: the reference's process is gone.
    """
    try:
        outputs = bench.expect(course, 0)
        found = bench.exactness(course, 0)
    except PartyFailure as failure:
        if not bench.eager.worker.running:
            raise trusted(failure, f"the reference died with {content.name}") from failure
        return None
    if found is None or not all(_defined(x, content) for x in found):
        return None
    return Answer(outputs, [x.bound for x in found], [x.equal for x in found])


def _defined(found: Exactness, content: Content) -> bool:
    """Whether what the reference gives is no chance; whole numbers that rounding decides (an argmax of
    equals) are."""
    if content.defined == "finite" and not found.finite:
        return False
    if content.defined == "infinite" and found.nan:
        return False
    return found.agrees and found.bound.reference_error <= _ILL_CONDITIONED
