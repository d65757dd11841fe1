"""Products with one row as reductions: each element of the result sums over one row of the weight."""

from __future__ import annotations

from math import gcd

import torch

from ..ir.expr import Expr
from ..ir.index import ZERO, unravel
from ..ir.lazy import Lazy, Pool, Position
from ..ir.placement import strided_view
from .pointwise import binary, is_pointwise

_SAME_ELEMENTS = {
    "view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "flatten", "unflatten", "permute", "transpose",
    "t",
}  # fmt: skip
"""Views that read each element once."""


def name_of(node: torch.fx.Node) -> str:
    """`mm` for a call of `aten.mm.default`; empty if the node is no call."""
    return str(getattr(node.target, "__name__", "")).split(".")[0] if node.op == "call_function" else ""


def goes_on(name: str) -> bool:
    """True if the kernel of an operator's argument can also compute the operator."""
    return is_pointwise(name) or name in _SAME_ELEMENTS


def has_one_reader(node: torch.fx.Node) -> bool:
    """True if all paths from a node meet in one reader, and one kernel can compute what lies between."""
    readers = set(node.users)
    while len(readers) > 1:
        first = min(readers)
        if not goes_on(name_of(first)):
            return False
        readers = (readers - {first}) | set(first.users)
    return True


def reads_rows(pool: Pool, row: Lazy, weight: Lazy) -> bool:
    """True if `row @ weight` has one row and each column of the weight is contiguous in memory.

    Such a weight is the transposed `[columns, width]` of `torch.nn.Linear`: its memory is read once and in
    order.
    """
    if row.shape[0] != 1 or row.kind not in "fd":
        return False
    found = strided_view(pool, weight)
    return found is not None and found[1][0] == 1


def one_row_product(pool: Pool, row: Lazy, weight: Lazy, together: int) -> Lazy:
    """`row @ weight`, whose loop over the width computes several neighbouring elements.

    Each element has a sum of its own, so that no addition waits for the one before it, and `row` is loaded
    once for all.

    Args:
        row: `[1, width]`.
        weight: `[width, columns]`.
        together: most elements of a loop; it takes their largest common divisor with the columns.

    Returns:
        `[1, columns]`, not stored.
    """
    width, columns = weight.shape
    arena, kind = pool.arena, row.kind
    together = gcd(columns, together)

    def sums(number: int) -> Lazy:
        def body(at: Position, over: Position, mask: Expr | None) -> Expr:
            factors = row.load((ZERO, *over), mask), weight.load((*over, at[0] * together + number), mask)
            a, b = (arena.cast(factor, kind) for factor in factors)
            return binary(arena, "*", a, b)

        return pool.reduction("sum", kind, (columns // together,), (width,), body, row.dtype)

    parts = [sums(number) for number in range(together)]

    def load(position: Position, mask: Expr | None) -> Expr:
        group, number = unravel(position[1], (columns // together, together))
        value = parts[0].load((group,), mask)
        for n, part in enumerate(parts[1:], start=1):
            value = arena.where(arena.at_least(number, n), part.load((group,), mask), value)
        return value

    return Lazy((1, columns), row.dtype, pool.memoised(load))
