"""How far an output may be from the reference: bounds derived from the reference's own error.

Its error against float64 is measured by relative L2 norm and by element. A candidate may err `factor` times
as much, and at least a few units in the last place. There is no absolute constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from agentforge.schema import TolerancePolicy

from ..workers.memory.shared_memory import dtype_name
from ..workers.pytree import Latitude

_CHUNK, _DEVICE_CHUNK = 1 << 14, 1 << 24
"""Elements of a piece. On a CPU torch computes so few in one thread: on a busy machine, threads that wait for
each other after each operator took 20 times as long."""
_TINY = 1e-300
_COARSE_EPS = 1e-3
"""Machine epsilon above which a unit in the last place is coarse (16-bit types): an eighth of the floor."""
_FINE_EPS = 1e-12
"""Machine epsilon above which a type is not double precision. Nothing more exact shows the error of long
serial sums in it, which grows with the root of their length."""
_COARSE_NORM = 3.5 / 8
"""Of the policy's factor, for the L2 norm of 16-bit outputs. They are accumulated in float32 and rounded
once, so the order of summation hardly changes their norm. 8-bit weights err 2 to 6 times as much."""
_COARSE_FLOOR, _COARSE_FEW = 3 / 64, 1 / 8
"""Of the policy's floor, for the L2 norm of 16-bit outputs: of many elements, and added for one element,
which may differ by a whole unit in the last place."""
_WORST_OF_MANY = 4.0
_TWO_ROUNDINGS = 2.2
"""How far an answer that rounds twice is from one that rounds once, in units of the latter's error: the root
of 3, and room for a draw."""
LARGEST_BOUND = 0.05
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
        """The bound multiplied by a factor."""
        return replace(
            self,
            relative=self.relative * factor,
            element=self.element * factor,
            absolute=self.absolute * factor,
        )


NOTHING = Bound(0.0, 0.0, 0.0, 0.0)
"""Of integers and booleans."""


@dataclass(frozen=True)
class Distance:
    """How far an output is from what was expected."""

    relative: float
    """L2 norm of the error / L2 norm of the expected values; inf if exactly one of them is not finite."""
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

    An honest reassociation of a long sum errs more than the reference's pairwise one, so the floor grows
    with its logarithm, in double precision with its root; not for 16-bit types, whose sums are accumulated in
    float32.
    """
    if _coarse(dtype):
        return policy.floor_ulps / 8
    growth = math.log2(max(reduction, 1.0)) / 4
    if torch.finfo(dtype).eps < _FINE_EPS:
        growth = max(growth, math.sqrt(reduction) / 4)
    return policy.floor_ulps * max(1.0, growth)


def _coarse(dtype: torch.dtype) -> bool:
    return torch.finfo(dtype).eps > _COARSE_EPS / 2


def _norm(reference: torch.Tensor, policy: TolerancePolicy, exclusive: float, own: float) -> float:
    """Allowed relative L2 error."""
    if _coarse(reference.dtype):
        share = _COARSE_FLOOR + _COARSE_FEW / math.sqrt(max(reference.numel(), 1))
        exclusive = policy.floor_ulps * share * torch.finfo(reference.dtype).eps
        own *= _COARSE_NORM
    return min(max(policy.factor * own, exclusive), LARGEST_BOUND)


def derive(
    reference: torch.Tensor, exact: torch.Tensor | None, policy: TolerancePolicy, reduction: float = 1.0
) -> Bound:
    """The bound for one output.

    Args:
        exact: the same in float64, or None if that could not be computed.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        return NOTHING
    eps = torch.finfo(reference.dtype).eps
    exclusive = floor_ulps(policy, reference.dtype, reduction) * eps
    least = Bound(_norm(reference, policy, exclusive, 0.0), _element(exclusive), 0.0, 0.0)
    if exact is None:
        return least
    own, worst = own_error(reference, exact)
    if not math.isfinite(own):
        return least
    relative = _norm(reference, policy, exclusive, own)
    absolute = min(policy.factor * worst, LARGEST_BOUND * root_mean_square(reference) * 4)
    return Bound(relative, _element(exclusive), absolute, own)


def own_error(reference: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Relative L2 error of an output against float64, and the largest absolute error of an element."""
    error2 = norm2 = largest = 0.0
    finite = all_finite(reference) and all_finite(exact)
    for x, y in _pieces(reference, exact):
        a, b = x.double(), y.double()
        if not finite:  # an overflow says nothing about the error of the other elements
            both = torch.isfinite(_widened(x)) & torch.isfinite(_widened(y.to(x.dtype)))
            b = torch.where(both, b, a)
        error, magnitude = _errors(a, b)
        error2 += _square(error)
        norm2 += _square(magnitude)
        largest = max(largest, float(error.max()))
    return _relative(error2, norm2), largest


def _relative(error2: float, norm2: float) -> float:
    """L2 norm of an error by that of what was expected, from their squares."""
    return 0.0 if error2 == 0 else math.sqrt(error2 / norm2) if norm2 > 0 else math.inf


def all_finite(value: object) -> bool:
    """Whether a tensor has neither NaN nor an infinity; True for integers, booleans and scalars."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return True
    if not (value.is_floating_point() or value.is_complex()):
        return True
    return all(math.isfinite(float(end)) for end in torch.aminmax(_widened(value)))


def kinds(tensor: torch.Tensor) -> torch.Tensor:
    """0 for each finite element, 1 for NaN, 2 for infinity, 3 for minus infinity (of real and imaginary
    parts if the tensor is complex)."""
    real = _widened(tensor)
    found = torch.zeros(real.shape, dtype=torch.uint8, device=real.device)
    if not all_finite(real):
        for into, x in _pieces(found, real):
            into.copy_(torch.isnan(x).byte() + 2 * torch.isposinf(x).byte() + 3 * torch.isneginf(x).byte())
    return found


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """Real, and in a dtype that torch can compare: 8-bit floats lack most operators."""
    real = _real(tensor)
    return real.float() if real.itemsize == 1 else real


def alternative(ours: object, exact: object) -> torch.Tensor | None:
    """Another right answer for elements that overflow in the reference's dtype, or are NaN only there.

    Returns:
        `exact` in the dtype of `ours`, or None if no element differs in kind.
    """
    if not isinstance(ours, torch.Tensor) or not isinstance(exact, torch.Tensor) or ours.shape != exact.shape:
        return None
    if not (ours.is_floating_point() or ours.is_complex()):
        return None
    rounded = exact.to(ours.dtype)
    return None if torch.equal(kinds(ours), kinds(rounded)) else rounded


def settled(
    got: torch.Tensor,
    expected: torch.Tensor,
    other: torch.Tensor | None,
    latitude: Latitude | None = None,
    first: int = 0,
) -> torch.Tensor:
    """What `got` is compared with: an element may agree with float32 eager or with float64.

    Args:
        first: flat index that `got` begins at.

    Returns:
        `expected`, with `other`'s value if the two differ in kind and `got` is of `other`'s kind.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return expected
    if latitude is not None:
        return latitude.settled(got, expected, first)
    if other is None:
        return expected
    theirs, better = kinds(expected), kinds(other)
    chosen = torch.where((theirs != better) & (kinds(got) == better), _real(other), _real(expected))
    return torch.view_as_complex(chosen) if expected.is_complex() else chosen


def _element(exclusive: float) -> float:
    """The worst of many elements may err some times as much as their norm."""
    return min(_WORST_OF_MANY * exclusive, LARGEST_BOUND)


def widest(bounds: list[Bound]) -> Bound:
    """The loosest of several draws' bounds for the same output."""
    return Bound(
        *(max(getattr(b, f) for b in bounds) for f in ("relative", "element", "absolute", "reference_error"))
    )


def halved(bound: Bound) -> Bound:
    """Half the tolerance, and at least what an answer that rounds twice differs from the reference's."""
    half, rounding = bound.scaled(0.5), _TWO_ROUNDINGS * bound.reference_error
    return replace(half, relative=max(half.relative, min(rounding, bound.relative)))


def root_mean_square(tensor: torch.Tensor) -> float:
    """Root mean square of the finite values."""
    total, count = 0.0, 0
    for (piece,) in _pieces(tensor):
        chunk = piece.double()
        square = _square(chunk)
        if not math.isfinite(square):
            finite = chunk[torch.isfinite(chunk)]
            square, left_out = _square(finite), chunk.numel() - finite.numel()
            count -= left_out
        total += square
        count += chunk.numel()
    return math.sqrt(total / count) if count else 0.0


def scale_of(value: object) -> float:
    """Root mean square of a floating-point or complex tensor's finite values; 0 for anything else."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return root_mean_square(value)
    return 0.0


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Flat pieces of tensors of the same size, real."""
    flat = [_real(tensor).reshape(-1) for tensor in tensors]
    size = _CHUNK if flat[0].device.type == "cpu" else _DEVICE_CHUNK
    for first in range(0, flat[0].numel(), size):
        yield tuple(x[first : first + size] for x in flat)


def _square(flat: torch.Tensor) -> float:
    """The square of the L2 norm; `torch.dot` wakes the threads of a library for few elements too."""
    return float((flat * flat).sum())


def _real(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    return tensor


def measure(got: torch.Tensor, expected: torch.Tensor, bound: Bound, scale: float | None = None) -> Distance:
    """Compare two outputs of the same shape, in float64 and in pieces.

    NaN agrees with NaN, an infinity with the same infinity; other non-finite values are infinitely far.
    Integers and booleans are compared by bytes.
    """
    if not (got.is_floating_point() or got.is_complex()):
        return _measure_exact(got, expected)
    scale = root_mean_square(expected) if scale is None else scale
    least = _least(bound, scale)
    error2 = norm2 = largest = 0.0
    worst, first = (-1.0, 0, 0.0, 0.0), 0
    for x, y in _pieces(got, expected):
        a, b = x.double(), y.double()
        error, magnitude = _errors(a, b)
        error2 += _square(error)
        norm2 += _square(magnitude)
        largest = max(largest, float(error.max()))
        # If no error is allowed (an all-zero output), any error is infinitely far.
        excess = error / magnitude.mul_(bound.element).clamp_(min=least)
        position = int(torch.argmax(excess))
        if float(excess[position]) > worst[0]:
            worst = (float(excess[position]), first + position, float(a[position]), float(b[position]))
        first += a.numel()
    return Distance(_relative(error2, norm2), largest, max(worst[0], 0.0), *worst[1:])


def _least(bound: Bound, scale: float) -> float:
    """Least absolute allowance of an element."""
    return max(scale * bound.element, bound.absolute, _TINY)


def element_errors(
    got: torch.Tensor, expected: torch.Tensor, bound: Bound, scale: float
) -> Iterator[torch.Tensor]:
    """The error of each element divided by its allowance, piece by piece as flat float64 tensors."""
    for a, b in _pieces(got, expected):
        error, magnitude = _errors(a.double(), b.double())
        yield error / magnitude.mul_(bound.element).clamp_(min=_least(bound, scale))


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
    """Place and size of the worst error, in words: `out[3, 17]: got 0.5, expected 0.7`."""
    index, remainder = [], distance.index
    for size in reversed(shape):
        index.append(remainder % max(size, 1))
        remainder //= max(size, 1)
    where = f"{path}[{', '.join(map(str, reversed(index)))}]" if shape else path
    return f"{where}: got {distance.got:.9g}, expected {distance.expected:.9g} ({dtype_name(dtype)})"
