"""Recognise structured tensors that a random distribution cannot reproduce: masks, positions, offsets."""

from __future__ import annotations

import torch

_LARGEST = 1 << 24
_MOST_SIZES = 512
"""Sizes of groups that an expression names; more of them are drawn."""
_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def pattern_of(tensor: torch.Tensor) -> str | None:
    """Return a Python expression that recreates structured values, or None if a distribution suffices.

    Recognised are:

    - lower and upper triangles of two values (causal masks: boolean, additive or 0/1);
    - additive masks of 0 and a huge negative value at random places (the expression leaves the first column
      unmasked, so that no row is fully masked);
    - biases of more values that such a mask hides at some places (ALiBi): the expression draws the rest from
      a normal distribution;
    - integers that rise in equal steps (positions, offsets of bags);
    - integers that never fall (offsets of bags of several sizes, ends of groups of rows): the expression
      exchanges the sizes.

    Args:
        tensor: any shape; the pattern must be the same in all leading dimensions.
    """
    if tensor.dtype in _INTEGERS:
        return _sequence(tensor) or _ends(tensor)
    if tensor.ndim < 2 or tensor.numel() == 0 or tensor.numel() > _LARGEST or tensor.is_complex():
        return None
    if tensor.is_floating_point() and tensor.itemsize == 1:
        return None  # their values cannot be compared
    rows, columns = tensor.shape[-2:]
    if rows < 2 or columns < 2:
        return None
    flat = tensor.detach().reshape(-1, rows, columns)
    first = flat[0]
    low, high = flat.min(), flat.max()
    if low == high and not _is_floor(low):
        return None
    two_valued = bool(((flat == low) | (flat == high)).all())
    if not two_valued:
        return _masked_bias(flat, tensor) if _is_floor(low) else None
    if bool((flat == first).all()):
        for lower in (True, False):
            found = _triangle(first, lower)
            if found is not None:
                return _finish(found, tensor)
    if tensor.is_floating_point() and _is_floor(low) and high == 0:
        return f"torch.where({_scattered(flat == low, tensor)}, {_literal(low)}, 0.0).to({tensor.dtype})"
    return None


def _masked_bias(flat: torch.Tensor, tensor: torch.Tensor) -> str | None:
    """Expression for values of a normal distribution that a mask hides at some places."""
    hidden = flat <= _floor(tensor.dtype)
    visible = flat[~hidden].double()
    if not visible.numel() or not bool(visible.isfinite().all()):
        return None
    places = None
    if bool((hidden == hidden[0]).all()):
        places = _triangle(hidden[0], lower=True) or _triangle(hidden[0], lower=False)
    drawn = f"torch.randn({tuple(tensor.shape)}, dtype={tensor.dtype})"
    mean, spread = visible.mean().item(), visible.std(correction=0).item()
    return (
        f"torch.where({places or _scattered(hidden, tensor)}, {_literal(flat.min())}, "
        f"{drawn} * {spread:.3g} + {mean:.3g})"
    )


def _scattered(hidden: torch.Tensor, tensor: torch.Tensor) -> str:
    """Expression for as many places, at random, none of them in the first column."""
    share = hidden.double().mean().item()
    shape = tuple(tensor.shape)
    return f"(torch.rand({shape}) < {share:.3g}) & (torch.arange({shape[-1]}) > 0)"


def _sequence(tensor: torch.Tensor) -> str | None:
    """Expression for positions and offsets: integers that rise in equal steps along the last dimension."""
    if tensor.ndim == 0 or tensor.shape[-1] < 2 or tensor.numel() > _LARGEST:
        return None
    flat = tensor.detach().reshape(-1, tensor.shape[-1])
    start, step = int(flat[0, 0]), int(flat[0, 1]) - int(flat[0, 0])
    line = torch.arange(flat.shape[1], device=flat.device, dtype=torch.int64) * step + start
    if step <= 0 or not bool((flat == line).all()):
        return None
    text = f"torch.arange({flat.shape[1]}) * {step} + {start}"
    return f"({text}).to({tensor.dtype}).expand({tuple(tensor.shape)}).contiguous()"


def group_sizes(tensor: torch.Tensor) -> torch.Tensor | None:
    """Differences of at least three integers that never fall and begin at 0 or above; else None."""
    if tensor.dtype not in _INTEGERS or tensor.ndim != 1 or not 3 <= len(tensor) <= _LARGEST:
        return None
    values = tensor.detach().long()
    sizes = values.diff(prepend=values.new_zeros(1))
    return sizes if bool((sizes >= 0).all()) and bool(values[-1] > 0) else None


def _ends(tensor: torch.Tensor) -> str | None:
    """Expression for ends or offsets of groups; the first one of offsets stays 0."""
    sizes = group_sizes(tensor)
    if sizes is None or sizes[0] == sizes.sum():
        return None
    fixed = 1 if sizes[0] == 0 else 0
    count, last = len(sizes) - fixed, int(sizes.sum())
    if count <= _MOST_SIZES:
        drawn = f"torch.tensor({sizes[fixed:].tolist()})[torch.randperm({count})].cumsum(0)"
    else:
        drawn = f"torch.cat([torch.randint(0, {last + 1}, ({count - 1},)).sort()[0], torch.tensor([{last}])])"
    text = f"torch.nn.functional.pad({drawn}, (1, 0))" if fixed else drawn
    return f"{text}.to({tensor.dtype})"


def _floor(dtype: torch.dtype) -> float:
    """Floating-point numbers up to this one are those of a mask."""
    return 0.9 * max(torch.finfo(dtype).min, -1e9)


def _is_floor(value: torch.Tensor) -> bool:
    return value.is_floating_point() and bool(value <= _floor(value.dtype))


def _triangle(matrix: torch.Tensor, lower: bool) -> str | None:
    """Expression for a matrix with one value in a triangle and another outside it."""
    rows, columns = matrix.shape
    inside, outside = (matrix[-1, 0], matrix[0, -1]) if lower else (matrix[0, -1], matrix[-1, 0])
    if inside == outside:
        return None
    # Diagonal at which the triangle ends: along the first row (lower) or the first column (upper).
    edge = matrix[0] if lower else matrix[:, 0]
    offset = (int((edge == inside).sum()) - 1) * (1 if lower else -1)
    mask = torch.ones(rows, columns, dtype=torch.bool, device=matrix.device)
    mask = mask.tril(offset) if lower else mask.triu(offset)
    if not torch.equal(torch.where(mask, inside, outside), matrix):
        return None
    side = "tril" if lower else "triu"
    ones = f"torch.ones({rows}, {columns}, dtype=torch.bool).{side}({offset})"
    if matrix.dtype == torch.bool:
        return ones if bool(inside) else f"~{ones}"
    return f"torch.where({ones}, {_literal(inside)}, {_literal(outside)})"


def _literal(value: torch.Tensor) -> str:
    number = value.item()
    if number == float("-inf"):
        return '-float("inf")'
    return repr(number)


def _finish(expression: str, tensor: torch.Tensor) -> str:
    text = f"({expression})" if expression.startswith("~") else expression
    if tensor.dtype != torch.bool:
        text += f".to({tensor.dtype})"
    return f"{text}.expand({tuple(tensor.shape)}).contiguous()"
