"""What an output that is outside of its bound may be all the same.

A floating-point output may be rounded to steps (quantisation). At a tie the last bit of the number
decides, and another right answer is a whole step off. So a few elements may each have the value that the
reference gives in float64, or on inputs that are moved by a few units in the last place. Integer outputs
have `integers.IntegerLatitude` for this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from ..workers.pytree import Leaf
from .tolerance import Bound, Distance, element_errors, measure, root_mean_square

_WAYS = 9
"""Ways to compute it again after which the search ends if none explained any element: float64, and eight
moves of the inputs. A tie keeps its side with a chance of about 0.6 when the inputs move."""
_FEW = 1e-3
"""Share of the elements that may have another way's value."""


@dataclass(frozen=True)
class Allowance:
    """The bound of an output outside of its usual one, and other ways to compute it."""

    bound: Bound
    scale: float | None = None
    """Root mean square of the output; None to take it from the compared part."""
    recomputed: Callable[[], Iterator[torch.Tensor]] | None = None
    """The output computed in other ways, one after the other."""

    @staticmethod
    def of(leaf: Leaf, bound: Bound, scale: float | None = None) -> Allowance:
        """For an output of the reference; one element of a small output is no small part of it."""
        small = not isinstance(leaf.value, torch.Tensor) or leaf.value.numel() * _FEW < 1
        return Allowance(bound, scale, None if small else leaf.recomputed)

    def measure(self, got: torch.Tensor, expected: torch.Tensor, first: int = 0) -> Distance:
        """The distance from a right answer.

        Args:
            first: flat index of the output that both begin at.
        """
        distance = measure(got, expected, self.bound, self.scale)
        if distance.within(self.bound) or self.recomputed is None or got.is_complex():
            return distance
        return measure(got, self._settled(got, expected, first), self.bound, self.scale)

    def _settled(self, got: torch.Tensor, expected: torch.Tensor, first: int) -> torch.Tensor:
        """`expected`, with another way's value at each element that only this way explains."""
        assert self.recomputed is not None
        scale = root_mean_square(expected) if self.scale is None else self.scale

        def near(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.cat(list(element_errors(a, b, self.bound, scale))) <= 1

        ours, right = got.reshape(-1), expected.reshape(-1).clone()
        wrong = (~near(ours, right)).nonzero().flatten()
        count = wrong.numel()
        if not 0 < count <= max(_FEW * ours.numel(), 1):
            return expected
        for way, other in enumerate(self.recomputed(), start=1):
            values = other.reshape(-1)[first + wrong].to(right.dtype)
            found = near(ours[wrong], values)
            right[wrong[found]] = values[found]
            wrong = wrong[~found]
            if not wrong.numel() or (way >= _WAYS and wrong.numel() == count):
                break
        return right.reshape(expected.shape)
