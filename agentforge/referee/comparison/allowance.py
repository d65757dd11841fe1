"""What an output that is outside of its bound may be all the same.

A few elements may decide its error, and another right answer differs in them:

- An output may be rounded to steps (quantisation). At a tie the last bit of the number decides, and another
  right answer is a whole step off. So each of these elements may have the value that the reference gives in
  float64, or on inputs that are moved by a few units in the last place.
- In a softmax of large scores, only the rows whose two largest scores are close have an error at all. So an
  element whose value moves with the inputs' last bits may have any value where it moves.

A reference may be much less exact than another right answer: the mean of squares less the square of the mean
cancels, and a variance in two passes does not. So an output may also be near the reference's in float64.

Integer outputs have `integers.IntegerLatitude` for this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from ..workers.pytree import Leaf
from .tolerance import Bound, Distance, element_errors, measure, root_mean_square

_NEAR = 1024
"""Units in the last place by which an answer may miss the reference's in float64."""
_WAYS = 9
"""Ways to compute it again after which the search ends if none explained any element: float64, and eight
moves of the inputs. A tie keeps its side with a chance of about 0.6 when the inputs move."""
_FEW = 2e-3
"""Share of the elements that may have another way's value."""
_STEPS = 2
"""Most values of an element that is rounded to steps: those beside its tie."""


@dataclass(frozen=True)
class Allowance:
    """The bound of an output outside of its usual one, and other ways to compute it."""

    bound: Bound
    scale: float | None = None
    """Root mean square of the output; None to take it from the compared part."""
    recomputed: Callable[[], Iterator[torch.Tensor]] | None = None
    """The output computed in other ways, one after the other."""
    exactly: Callable[[], Iterator[torch.Tensor]] | None = None
    """The same for outputs of any size; the first way is float64."""

    @staticmethod
    def of(leaf: Leaf, bound: Bound, scale: float | None = None) -> Allowance:
        """For an output of the reference; one element of a small output is no small part of it."""
        small = not isinstance(leaf.value, torch.Tensor) or leaf.value.numel() * _FEW < 1
        return Allowance(bound, scale, None if small else leaf.recomputed, leaf.recomputed)

    def measure(self, got: torch.Tensor, expected: torch.Tensor, first: int = 0) -> Distance:
        """The distance from a right answer.

        Args:
            first: flat index of the output that both begin at.
        """
        distance = measure(got, expected, self.bound, self.scale)
        if distance.within(self.bound) or self.exactly is None or got.is_complex():
            return distance
        better = self._from_float64(got, expected, first)
        if better is not None or self.recomputed is None:
            return better or distance
        return measure(got, self._settled(got, expected, first), self.bound, self.scale)

    def _from_float64(self, got: torch.Tensor, expected: torch.Tensor, first: int) -> Distance | None:
        """The distance from the reference in float64; None if it is not near, or the reference is exact."""
        assert self.exactly is not None
        eps = torch.finfo(got.dtype).eps
        if self.bound.relative <= _NEAR * eps:
            return None  # the reference is exact enough to be the measure
        exact = next(self.exactly(), None)
        if exact is None or exact.dtype is not torch.float64 or got.dtype is torch.float64:
            return None  # it cannot be computed in float64, or chooses its type itself
        part = exact.reshape(-1)[first : first + got.numel()].reshape(expected.shape)
        bound = Bound(min(self.bound.relative, _NEAR * eps), min(self.bound.element, _NEAR * eps), 0.0, 0.0)
        distance = measure(got, part, bound, self.scale)
        near = distance.excess <= 1 if self.scale is not None else distance.within(bound)
        return distance if near else None

    def _settled(self, got: torch.Tensor, expected: torch.Tensor, first: int) -> torch.Tensor:
        """`expected`, with another right value at each of a few elements that only this value explains."""
        assert self.recomputed is not None
        ours, right = got.reshape(-1), expected.reshape(-1).clone()
        few = self._deciding(ours, right)
        if few is None:
            return expected
        wanted = ours[few.places]
        usual = nearest = right[few.places]
        values = [usual]
        for way, other in enumerate(self.recomputed(), start=1):
            values.append(other.reshape(-1)[first + few.places].to(right.dtype))
            nearest = _nearer(wanted, nearest, values[-1])
            if way == _WAYS:
                nearest = torch.where(_among(values, wanted), wanted, nearest)
            explained = (wanted - nearest).abs() <= (wanted - usual).abs() / 2
            if few.explained(wanted, nearest, self.bound) or (way >= _WAYS and not explained.any()):
                break
        right[few.places] = nearest
        return right.reshape(expected.shape)

    def _deciding(self, ours: torch.Tensor, right: torch.Tensor) -> _Few | None:
        """The elements that are too far, and those that make the norm of the error too large; None if they
        are not few."""
        most = max(int(_FEW * ours.numel()), 1)
        scale = root_mean_square(right) if self.scale is None else self.scale
        chosen = torch.cat(list(element_errors(ours, right, self.bound, scale))) > 1
        room = math.inf
        if self.scale is None:  # else it is a part, whose norm may be small by chance
            squares = (ours - right).double().square_().nan_to_num_(0.0, 0.0, 0.0)
            allowed = self.bound.relative**2 * scale**2 * ours.numel()
            largest = squares.topk(min(most + 1, ours.numel()))
            left = squares.sum() - largest.values.cumsum(0)
            needed = int((left > allowed).sum()) + 1 if squares.sum() > allowed else 0
            if needed > most:
                return None
            chosen[largest.indices[:needed]] = True
            room = allowed - float(squares[~chosen].sum())
        places = chosen.nonzero().flatten()
        return _Few(places, scale, room) if 0 < places.numel() <= most else None


@dataclass(frozen=True)
class _Few:
    """The elements that decide the error of an output."""

    places: torch.Tensor
    """Flat indices."""
    scale: float
    room: float
    """What the sum of their squared errors may be."""

    def explained(self, got: torch.Tensor, right: torch.Tensor, bound: Bound) -> bool:
        """Whether these values of theirs are near enough."""
        near = all(bool((x <= 1).all()) for x in element_errors(got, right, bound, self.scale))
        return near and float((got - right).double().square().sum()) <= self.room


def _nearer(wanted: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return torch.where((wanted - second).abs() < (wanted - first).abs(), second, first)


def _among(values: list[torch.Tensor], wanted: torch.Tensor) -> torch.Tensor:
    """Which elements move with their inputs' last bits, and are wanted where they move.

    These are few values of many, so the ends of their range are not known better than to half of it.
    """
    ordered = torch.stack(values).sort(0).values
    different = (ordered.diff(dim=0) != 0).sum(0) + 1
    room = (ordered[-1] - ordered[0]) / 2
    return (different > _STEPS) & (ordered[0] - room <= wanted) & (wanted <= ordered[-1] + room)
