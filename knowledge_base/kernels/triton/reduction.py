"""Sum, mean and maximum: over the last dimension, over the first of two, or over everything.

---
id: reduction
title: Deterministic reductions without atomics
op_types: [reduction]
functions: [reduce_rows, reduce_columns, reduce_all]
good_for: >-
  Memory-bound reductions: each element is read once, partial results are combined in a fixed order, so
  that the same input always gives the same bits. Few long rows, few columns and everything at once are cut
  into pieces that fill the GPU; a second launch combines them.
limits: >-
  Contiguous after .contiguous(); float32, float16 and bfloat16, accumulated in float32; a NaN is the
  maximum, as in torch; no gradient.
parameters:
  max_block: [16384, 8192, 4096]
  block: [4096, 2048, 8192]
  block_rows: [64, 32, 128]
  block_cols: [64, 128, 32]
  lane_bytes: [32, 64, 16]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"max_block": 16384, "block": 4096, "block_rows": 64, "block_cols": 64, "lane_bytes": 32}
PROGRAMS = 1024
"""Enough of them for every processor of a large GPU to have several."""


@triton.jit
def larger(a, b):
    """The maximum; a NaN stays."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def reduced(x, axis: tl.constexpr, MAXIMUM: tl.constexpr):
    """Sum or maximum along an axis."""
    return tl.reduce(x, axis, larger) if MAXIMUM else tl.sum(x, axis=axis)


@triton.jit
def reduce_row(
    x_ptr, out_ptr, rows, cols, divisor, MAXIMUM: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """`ROWS` whole rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row[:, None] < rows) & (col < cols)
    nothing = float("-inf") if MAXIMUM else 0.0
    place = x_ptr + row[:, None] * cols + col
    x = tl.load(place, mask=inside, other=nothing, eviction_policy="evict_first").to(tl.float32)
    tl.store(out_ptr + row, reduced(x, 1, MAXIMUM) / divisor, mask=row < rows)


@triton.jit
def reduce_piece(
    x_ptr, out_ptr, cols, pieces, divisor,
    MAXIMUM: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Piece `program_id(1)` of row `program_id(0)`: blocks that lie `pieces` blocks apart."""
    if WIDE:
        cols = tl.cast(cols, tl.int64)
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    x_ptr += row * cols
    lane = tl.arange(0, BLOCK)
    nothing = float("-inf") if MAXIMUM else 0.0
    found = tl.full((BLOCK,), nothing, tl.float32)
    whole = cols // BLOCK * BLOCK
    for start in range(piece * BLOCK, whole, pieces * BLOCK):
        x = tl.load(x_ptr + start + lane, eviction_policy="evict_first").to(tl.float32)
        found = larger(found, x) if MAXIMUM else found + x
    if cols // BLOCK % pieces == piece:
        at = whole + lane
        x = tl.load(x_ptr + at, mask=at < cols, other=nothing).to(tl.float32)
        found = larger(found, x) if MAXIMUM else found + x
    tl.store(out_ptr + row * pieces + piece, reduced(found, 0, MAXIMUM) / divisor)


@triton.jit
def reduce_column(
    x_ptr, out_ptr, rows, cols, divisor,
    MAXIMUM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Piece `program_id(1)` of a strip of `COLS` columns; neighbouring threads read neighbouring columns."""
    if WIDE:
        rows = tl.cast(rows, tl.int64)
    at = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)
    piece, pieces = tl.program_id(1), tl.num_programs(1)
    nothing = float("-inf") if MAXIMUM else 0.0
    found = tl.full((ROWS, COLS), nothing, tl.float32)
    for start in range(piece * ROWS, rows, pieces * ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (at[None, :] < cols)
        place = x_ptr + row[:, None].to(tl.int64) * cols + at[None, :]
        x = tl.load(place, mask=inside, other=nothing, eviction_policy="evict_first").to(tl.float32)
        found = larger(found, x) if MAXIMUM else found + x
    tl.store(out_ptr + piece.to(tl.int64) * cols + at, reduced(found, 0, MAXIMUM) / divisor, mask=at < cols)


def tile(cols: int, size: int) -> tuple[int, int, int]:
    """Rows of a program, their columns as a power of two, and warps, for elements of `size` bytes.

    A thread asks for `lane_bytes` of the input before it waits for the first of them. Short rows share a
    program, so that it has four warps all the same.
    """
    block = triton.next_power_of_2(cols)
    warp = 32 * PARAMETERS["lane_bytes"]
    together = max(1, 4 * warp // (block * size))
    return together, block, min(max(together * block * size // warp, 1), 16)


def cut(programs: int, length: int, block: int) -> int:
    """Pieces to cut each of so many programs' work into, of at least four blocks each."""
    return max(1, min(PROGRAMS // max(programs, 1), length // (4 * block)))


def counts_beyond(end: int, step: int) -> bool:
    """Whether a loop's last count, up to a step beyond its end, needs more than 32 bits."""
    return end + step > 2**31


def reduce_rows(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of `x` (..., cols) over its last dimension."""
    cols = x.shape[-1]
    flat = x.contiguous().reshape(-1, cols)
    rows, divisor, maximum = flat.shape[0], float(cols) if how == "mean" else 1.0, how == "max"
    out = torch.empty(rows, dtype=x.dtype, device=x.device)
    if rows and cols > PARAMETERS["max_block"]:
        _, block, warps = tile(PARAMETERS["block"], x.element_size())
        pieces = cut(rows, cols, block)
        found = out if pieces == 1 else torch.empty((rows, pieces), dtype=torch.float32, device=x.device)
        reduce_piece[(rows, pieces)](
            flat, found, cols, pieces, divisor if pieces == 1 else 1.0,
            MAXIMUM=maximum, BLOCK=block, WIDE=counts_beyond(cols, pieces * block), num_warps=warps,
        )  # fmt: skip
        flat, cols = found, pieces
    if rows and flat is not out:
        together, block, warps = tile(cols, flat.element_size())
        reduce_row[(triton.cdiv(rows, together),)](
            flat, out, rows, cols, divisor, MAXIMUM=maximum, ROWS=together, BLOCK=block, num_warps=warps
        )
    return out.reshape(x.shape[:-1])


def reduce_columns(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of a matrix over its first dimension."""
    found, p = x.contiguous(), PARAMETERS
    (rows, cols), height, width = x.shape, p["block_rows"], p["block_cols"]
    strips, divisor = triton.cdiv(cols, width), float(rows) if how == "mean" else 1.0
    if not cols:
        return torch.empty(0, dtype=x.dtype, device=x.device)
    while found.ndim == 2:
        last = (pieces := cut(strips, found.shape[0], height)) == 1
        shape, dtype = ((cols,), x.dtype) if last else ((pieces, cols), torch.float32)
        given, found = found, torch.empty(shape, dtype=dtype, device=x.device)
        _, _, warps = tile(height * width, given.element_size())
        reduce_column[(strips, pieces)](
            given, found, given.shape[0], cols, divisor if last else 1.0, MAXIMUM=how == "max",
            ROWS=height, COLS=width, WIDE=counts_beyond(given.shape[0], pieces * height), num_warps=warps,
        )  # fmt: skip
    return found


def reduce_all(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of all elements; a 0-d tensor."""
    return reduce_rows(x.contiguous().reshape(1, -1), how).reshape(())
