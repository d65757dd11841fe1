"""Answers in 16 bits that are cut off or rounded in one direction, so that their errors add up."""

from __future__ import annotations

from itertools import product

import torch

from .tolerance import Bound

_ONE_ROUNDING = 0.25
"""Relative error of a reference that rounds once, in units of machine epsilon: at most 0.22."""
_FEWEST = 256
"""Different values below which errors may depend on each other."""
_HALF, _NOISE, _ENOUGH = 0.5, 0.07, 1024
"""Mean error of answers that are cut off, in units in the last place; how far that many are from it."""
_STEPS = 4


def rounds_one_way(got: torch.Tensor, expected: torch.Tensor, bound: Bound) -> bool:
    """Whether answers lie half a unit in the last place on one side of a reference's that are rounded to the
    nearest: nearer to zero, farther from it, below or above.

    A common factor, such as a row's sum that was rounded, errs in one direction too, but more for large
    mantissas than for small ones.

    Args:
        got, expected: tensors of one shape and dtype; False unless it is bfloat16 or float16.
        bound: the allowance of `expected`; False if the reference rounds more than once.
    """
    if got.dtype not in (torch.bfloat16, torch.float16):
        return False
    if bound.reference_error > _ONE_ROUNDING * torch.finfo(got.dtype).eps:
        return False
    ours, right = got.reshape(-1), expected.reshape(-1)
    kept = ours.isfinite() & right.isfinite() & (ours.signbit() == right.signbit())
    ours, right = ours[kept], right[kept]
    large = torch.frexp(right.float()).mantissa.abs() >= 0.75
    if min(int(large.sum()), int((~large).sum())) < _ENOUGH:
        return False
    if len(right.view(torch.int16).unique()) < _FEWEST:
        return False
    steps = (_magnitude(ours) - _magnitude(right)).clamp_(-_STEPS, _STEPS).double()
    upwards = torch.where(right.signbit(), -steps, steps)
    return any(
        all(abs(side * float(errors[some].mean()) - _HALF) < _NOISE for some in (large, ~large))
        for errors, side in product((steps, upwards), (1, -1))
    )


def _magnitude(x: torch.Tensor) -> torch.Tensor:
    """Numbers of the steps from zero to each element."""
    return (x.view(torch.int16) & 0x7FFF).int()
