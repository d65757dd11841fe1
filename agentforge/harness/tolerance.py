"""How far an output may be from the reference: bounds derived from the reference's own error.

For each output the reference in its own dtype is compared with the reference in float64, by relative L2
norm and by element. A candidate may err `factor` times as much, and never less than a few units in the
last place at the output's own scale. There is no absolute constant: zeros have a relative error of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from agentforge.schema import TolerancePolicy

from .memory import dtype_name

_CHUNK = 1 << 16
_TINY = 1e-300
_COARSE_EPS = 1e-3
"""Machine epsilon above which a unit in the last place is coarse (16-bit types): an eighth of the floor."""
_WORST_OF_MANY = 4.0
_LARGEST_BOUND = 0.05
"""No policy and no ill-conditioned reference widens the relative bound beyond this."""


@dataclass(frozen=True)
class Bound:
    """What one output is allowed."""

    relative: float
    """Of the L2 norm; 0 for integers and booleans."""
    element: float
    """Per element, in units of max(|expected|, root mean square of the output)."""
    absolute: float
    """Per element, absolute: what the reference's worst element allows."""
    reference_error: float
    """Relative L2 error of the reference against float64."""

    def scaled(self, factor: float) -> Bound:
        """So many times as much."""
        return replace(
            self,
            relative=self.relative * factor,
            element=self.element * factor,
            absolute=self.absolute * factor,
        )


_NOTHING = Bound(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Distance:
    """How far an output is from what was expected."""

    relative: float
    """L2 norm of the error / L2 norm of the expected values; inf where either is not finite alone."""
    absolute: float
    """Largest absolute error."""
    excess: float
    """Largest ratio of an element's error to its bound; above 1 is too far."""
    index: int
    """Flat index of the worst element."""
    got: float = 0.0
    expected: float = 0.0

    def within(self, bound: Bound) -> bool:
        """Whether both the norm and every element are inside the bound."""
        return self.relative <= bound.relative and self.excess <= 1.0


def floor_ulps(policy: TolerancePolicy, dtype: torch.dtype, reduction: float) -> float:
    """Least allowance in units in the last place.

    Args:
        policy: the definition's.
        dtype: of the output.
        reduction: input elements per output element. An honest reassociation of a long sum errs more
            than the reference's pairwise one, so the floor grows with its logarithm.
    """
    ulps = policy.floor_ulps / (8 if torch.finfo(dtype).eps > _COARSE_EPS / 2 else 1)
    return ulps * max(1.0, math.log2(max(reduction, 1.0)) / 4)


def derive(
    reference: torch.Tensor, exact: torch.Tensor | None, policy: TolerancePolicy, reduction: float = 1.0
) -> Bound:
    """The bound for one output.

    Args:
        reference: the reference's output in its own dtype.
        exact: the same in float64, or None where that could not be computed.
        policy: the definition's.
        reduction: input elements per output element.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        return _NOTHING
    eps = torch.finfo(reference.dtype).eps
    floor = floor_ulps(policy, reference.dtype, reduction) * eps
    if exact is None:
        return Bound(min(floor, _LARGEST_BOUND), _element(floor), 0.0, 0.0)
    unbounded = Bound(math.inf, 1.0, 0.0, 0.0)
    own = measure(reference, exact, unbounded)
    if not math.isfinite(own.relative):
        return Bound(min(floor, _LARGEST_BOUND), _element(floor), 0.0, 0.0)
    relative = min(max(policy.factor * own.relative, floor), _LARGEST_BOUND)
    absolute = min(policy.factor * own.absolute, _LARGEST_BOUND * root_mean_square(reference) * 4)
    return Bound(relative, _element(floor), absolute, own.relative)


@dataclass(frozen=True)
class Exactness:
    """What one output of a reference says of itself beside another computation of it."""

    bound: Bound
    agrees: bool
    """Of the same form and finite in the same places; what is no floating-point tensor is the same."""
    finite: bool
    nan: bool
    """Whether it holds NaN."""
    equal: bool
    """Whether it is what was computed in float64, to the last bit."""


def exactness(ours: object, better: object, policy: TolerancePolicy, reduction: float) -> Exactness:
    """Hold an output of the reference against a better computation of it.

    Args:
        ours: in the reference's own dtype, or a scalar.
        better: computed in float64, or from inputs that were moved a little.
        policy: the definition's.
        reduction: input elements per output element.
    """
    if not isinstance(ours, torch.Tensor):
        same = not isinstance(better, torch.Tensor) and ours == better
        return Exactness(_NOTHING, same, True, False, same)
    exact = better if isinstance(better, torch.Tensor) and better.shape == ours.shape else None
    bound = derive(ours, exact, policy, reduction)
    if not (ours.is_floating_point() or ours.is_complex()):
        same = exact is not None and torch.equal(ours, exact)
        return Exactness(bound, same, True, False, same)
    finite = torch.isfinite(ours)
    return Exactness(
        bound=bound,
        agrees=exact is not None and torch.equal(finite, torch.isfinite(exact)),
        finite=bool(finite.all()),
        nan=bool(torch.isnan(ours).any()),
        equal=exact is not None and torch.equal(ours.to(exact.dtype), exact),
    )


def _element(floor: float) -> float:
    """The worst of many elements may err some times as much as their norm."""
    return min(_WORST_OF_MANY * floor, _LARGEST_BOUND)


def widest(bounds: list[Bound]) -> Bound:
    """The loosest of several draws' bounds for the same output."""
    return Bound(
        *(max(getattr(b, f) for b in bounds) for f in ("relative", "element", "absolute", "reference_error"))
    )


def root_mean_square(tensor: torch.Tensor) -> float:
    """Root mean square of the finite values."""
    total, count = 0.0, 0
    for chunk, _ in _pairs(tensor, tensor):
        square = float(torch.dot(chunk, chunk))
        if not math.isfinite(square):
            finite = chunk[torch.isfinite(chunk)]
            square, left_out = float(torch.dot(finite, finite)), chunk.numel() - finite.numel()
            count -= left_out
        total += square
        count += chunk.numel()
    return math.sqrt(total / count) if count else 0.0


def _pairs(got: torch.Tensor, expected: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    a, b = _real(got).reshape(-1), _real(expected).reshape(-1)
    for first in range(0, a.numel(), _CHUNK):
        yield a[first : first + _CHUNK].double(), b[first : first + _CHUNK].double()


def _real(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    return tensor


def measure(got: torch.Tensor, expected: torch.Tensor, bound: Bound, scale: float | None = None) -> Distance:
    """Compare two outputs of the same shape, in float64 and in pieces.

    NaN agrees with NaN and an infinity with the same infinity; anything else that is not finite is
    infinitely far. Integers and booleans are compared by bytes, so that no stored value hides.

    Args:
        got: the candidate's.
        expected: the reference's.
        bound: for the elements' allowance.
        scale: root mean square of the whole output, where these are parts of it.
    """
    if not (got.is_floating_point() or got.is_complex()):
        return _measure_exact(got, expected)
    scale = root_mean_square(expected) if scale is None else scale
    least = max(scale * bound.element, bound.absolute)
    error2 = norm2 = largest = 0.0
    worst = (-1.0, 0, 0.0, 0.0)
    for number, (a, b) in enumerate(_pairs(got, expected)):
        error, magnitude = _errors(a, b)
        error2 += float(torch.dot(error, error))
        norm2 += float(torch.dot(magnitude, magnitude))
        largest = max(largest, float(error.max()))
        # Where nothing is allowed (an all-zero output), any error at all is infinitely far.
        excess = error / magnitude.mul_(bound.element).clamp_(min=max(least, _TINY))
        position = int(torch.argmax(excess))
        if float(excess[position]) > worst[0]:
            worst = (
                float(excess[position]),
                number * _CHUNK + position,
                float(a[position]),
                float(b[position]),
            )
    relative = 0.0 if error2 == 0 else math.sqrt(error2 / norm2) if norm2 > 0 else math.inf
    return Distance(relative, largest, max(worst[0], 0.0), *worst[1:])


def _errors(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Absolute errors and magnitudes of what was expected, both new tensors."""
    error, magnitude = (a - b).abs_(), b.abs()
    if not math.isfinite(float(error.sum())):
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        error = torch.where(same, torch.zeros_like(error), error.nan_to_num(math.inf))
        magnitude = magnitude.nan_to_num(0.0, 0.0, 0.0)
    return error, magnitude


def _measure_exact(got: torch.Tensor, expected: torch.Tensor) -> Distance:
    if got.dtype is torch.bool:
        got, expected = got.view(torch.uint8), expected.view(torch.uint8)
    different = (got != expected).reshape(-1)
    if not bool(different.any()):
        return Distance(0.0, 0.0, 0.0, 0)
    index = int(different.to(torch.uint8).argmax())
    a, b = int(got.reshape(-1)[index]), int(expected.reshape(-1)[index])
    return Distance(math.inf, float(abs(a - b)), math.inf, index, float(a), float(b))


def explain(path: str, shape: tuple[int, ...], distance: Distance, dtype: torch.dtype) -> str:
    """Where and how far, for a person: `out[3, 17]: got 0.5, expected 0.7`."""
    index, remainder = [], distance.index
    for size in reversed(shape):
        index.append(remainder % max(size, 1))
        remainder //= max(size, 1)
    where = f"{path}[{', '.join(map(str, reversed(index)))}]" if shape else path
    return f"{where}: got {distance.got:.9g}, expected {distance.expected:.9g} ({dtype_name(dtype)})"
