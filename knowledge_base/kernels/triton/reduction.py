"""Sum, mean and maximum: over the last dimension, over the first of two, or over everything.

---
id: reduction
title: Deterministic reductions without atomics
op_types: [reduction]
functions: [reduce_rows, reduce_columns, reduce_all]
good_for: >-
  Memory-bound reductions: each element is read once, partial results are combined in a fixed order, so
  that the same input always gives the same bits. A full reduction takes two launches.
limits: >-
  Contiguous after .contiguous(); float32, float16 and bfloat16, accumulated in float32; no gradient. The
  maximum ignores NaN as tl.max does, unlike torch.
parameters:
  block: [4096, 2048, 8192]
  block_rows: [64, 32, 128]
  block_cols: [64, 128, 32]
  num_warps: [8, 4]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block": 4096, "block_rows": 64, "block_cols": 64, "num_warps": 8}


@triton.jit
def reduce_row(x_ptr, out_ptr, cols, pieces, divisor, MAXIMUM: tl.constexpr, BLOCK: tl.constexpr):
    """Piece `program_id(1)` of row `program_id(0)`: blocks that lie `pieces` blocks apart."""
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    lane = tl.arange(0, BLOCK)
    nothing = float("-inf") if MAXIMUM else 0.0
    found = tl.full((BLOCK,), nothing, tl.float32)
    for start in range(piece * BLOCK, cols, pieces * BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=nothing).to(tl.float32)
        found = tl.maximum(found, x) if MAXIMUM else found + x
    result = tl.max(found, axis=0) if MAXIMUM else tl.sum(found, axis=0) / divisor
    tl.store(out_ptr + row * pieces + piece, result)


@triton.jit
def reduce_column(
    x_ptr, out_ptr, rows, cols, divisor, MAXIMUM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """A strip of `COLS` columns; neighbouring threads read neighbouring columns."""
    at = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)
    nothing = float("-inf") if MAXIMUM else 0.0
    found = tl.full((ROWS, COLS), nothing, tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (at[None, :] < cols)
        place = x_ptr + row[:, None].to(tl.int64) * cols + at[None, :]
        x = tl.load(place, mask=inside, other=nothing).to(tl.float32)
        found = tl.maximum(found, x) if MAXIMUM else found + x
    result = tl.max(found, axis=0) if MAXIMUM else tl.sum(found, axis=0) / divisor
    tl.store(out_ptr + at, result, mask=at < cols)


def _rows(x: torch.Tensor, how: str, pieces: int, dtype: torch.dtype) -> torch.Tensor:
    rows, cols = x.shape
    out = torch.empty((rows, pieces), dtype=dtype, device=x.device)
    block = min(PARAMETERS["block"], triton.next_power_of_2(cols))
    reduce_row[(rows, pieces)](
        x, out, cols, pieces, float(cols) if how == "mean" else 1.0, MAXIMUM=how == "max", BLOCK=block,
        num_warps=PARAMETERS["num_warps"],
    )  # fmt: skip
    return out


def reduce_rows(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of `x` (..., cols) over its last dimension."""
    flat = x.contiguous().reshape(-1, x.shape[-1])
    return _rows(flat, how, 1, x.dtype).reshape(x.shape[:-1])


def reduce_columns(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of a matrix over its first dimension."""
    x = x.contiguous()
    rows, cols = x.shape
    out = torch.empty(cols, dtype=x.dtype, device=x.device)
    width = PARAMETERS["block_cols"]
    reduce_column[(triton.cdiv(cols, width),)](
        x, out, rows, cols, float(rows) if how == "mean" else 1.0, MAXIMUM=how == "max",
        ROWS=PARAMETERS["block_rows"], COLS=width, num_warps=PARAMETERS["num_warps"],
    )  # fmt: skip
    return out


def reduce_all(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of all elements; a 0-d tensor."""
    flat = x.contiguous().reshape(1, -1)
    pieces = max(1, min(1024, flat.shape[1] // (4 * PARAMETERS["block"])))
    partial = _rows(flat, "max" if how == "max" else "sum", pieces, torch.float32)
    result = _rows(partial, "max" if how == "max" else "sum", 1, torch.float32).reshape(())
    return (result / x.numel() if how == "mean" else result).to(x.dtype)
