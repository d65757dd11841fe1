"""What an output of the reference says of itself beside a better computation of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from agentforge.schema import TolerancePolicy

from ..workers.pytree import Leaf
from .tolerance import LARGEST_BOUND, NOTHING, Bound, all_finite, derive, kinds, own_error

_UNDECIDED = 1e-3
"""Share of an integer output's elements that rounding may decide; with more, the answer is chance."""


@dataclass(frozen=True)
class Exactness:
    """What one output of a reference says of itself beside another computation of it."""

    bound: Bound
    agrees: bool
    """Of the same form and finite in the same places, and zero if that is zero everywhere; other tensors are
    the same."""
    finite: bool
    nan: bool
    """Whether it has NaN."""
    equal: bool
    """Whether it is what was computed in float64, to the last bit."""


def exactness(ours: object, better: object, policy: TolerancePolicy, reduction: float) -> Exactness:
    """Hold an output of the reference against a better computation of it."""
    if not isinstance(ours, torch.Tensor):
        same = not isinstance(better, torch.Tensor) and ours == better
        return Exactness(NOTHING, same, True, False, same)
    exact = better if isinstance(better, torch.Tensor) and better.shape == ours.shape else None
    bound = derive(ours, exact, policy, reduction)
    if not (ours.is_floating_point() or ours.is_complex()):
        different = 1.0 if exact is None else float((ours != exact).double().mean()) if ours.numel() else 0.0
        return Exactness(bound, different <= _UNDECIDED, True, False, different == 0.0)
    nothing_but_error = exact is not None and not exact.any() and bool(ours.any())
    if exact is not None and all_finite(ours) and all_finite(exact):
        equal = bound.reference_error == 0 and not nothing_but_error
        return Exactness(bound, agrees=not nothing_but_error, finite=True, nan=False, equal=equal)
    finite = kinds(ours) == 0
    return Exactness(
        bound=bound,
        agrees=exact is not None and torch.equal(finite, kinds(exact) == 0) and not nothing_but_error,
        finite=bool(finite.all()),
        nan=bool(torch.isnan(ours).any()),
        equal=exact is not None and torch.equal(ours.to(exact.dtype), exact),
    )


def spread(exact: Sequence[Leaf], moves: Iterable[Sequence[Leaf]], least: int) -> list[float]:
    """Relative L2 distance of each output from the same of other computations, root mean square.

    Args:
        least: computations that are made also if they take longer than a second.
    """
    start, squares, made = time.monotonic(), [0.0] * len(exact), 0
    for made, moved in enumerate(moves, 1):
        pairs = zip(squares, exact, moved, strict=True)
        squares = [x + _distance(a.value, b.value) ** 2 for x, a, b in pairs]
        if made >= least and time.monotonic() - start > 1:
            break
    return [math.sqrt(x / made) for x in squares]


def _distance(ours: object, other: object) -> float:
    """Relative L2 distance of two computations of an output; 0 if they cannot be compared."""
    if not isinstance(ours, torch.Tensor) or not isinstance(other, torch.Tensor) or ours.shape != other.shape:
        return 0.0
    if not (ours.is_floating_point() or ours.is_complex()):
        return 0.0
    found = own_error(ours, other)[0]
    return found if math.isfinite(found) else 0.0


def permitted(found: Exactness, low: object, better: object, factor: float) -> Exactness:
    """`found` with the bound widened by what the reference errs in a lower precision that the user allowed.

    Args:
        low: the reference's output in that precision.
        better: the same output in float64, or moved.
        factor: allowed multiple of that error.
    """
    if not isinstance(low, torch.Tensor) or not isinstance(better, torch.Tensor):
        return found
    if not low.is_floating_point() or low.shape != better.shape:
        return found
    own, worst = own_error(low, better)
    alike = torch.equal(kinds(low), kinds(better.to(low.dtype)))
    if not alike or own >= LARGEST_BOUND:  # the precision itself fails for such inputs
        return replace(found, agrees=False)
    relative = max(found.bound.relative, min(factor * own, LARGEST_BOUND))
    absolute = max(found.bound.absolute, factor * worst)
    return replace(found, bound=replace(found.bound, relative=relative, absolute=absolute))
