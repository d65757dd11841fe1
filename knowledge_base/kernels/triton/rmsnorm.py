"""RMSNorm over the last dimension, with an optional residual that is added first.

---
id: rmsnorm
title: RMSNorm, with the residual addition in the same pass
op_types: [norm]
functions: [rmsnorm]
good_for: >-
  Memory-bound normalisation: a row that fits one block is read once, short rows share a program; the
  residual sum is written on the way, so that the addition before the norm costs no pass of its own.
limits: >-
  Last dimension, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32. Rows
  beyond max_block columns are read twice; no gradient.
parameters:
  max_block: [16384, 8192, 32768]
  block: [4096, 2048, 8192]
  lane_bytes: [32, 64, 16]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"max_block": 16384, "block": 4096, "lane_bytes": 32}


@triton.jit
def rmsnorm_row(
    x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, rows, cols, eps,
    RESIDUAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`ROWS` whole rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    at = row[:, None] * cols + col[None, :]
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    x = tl.load(x_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    # Asked for before the reduction, whose barrier no load is moved across.
    weight = tl.load(weight_ptr + col, mask=col < cols, other=0.0, eviction_policy="evict_last")
    if RESIDUAL:
        other = tl.load(residual_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
        x += other.to(tl.float32)
        tl.store(sum_ptr + at, x, mask=inside)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / cols + eps)
    tl.store(out_ptr + at, x * scale[:, None] * weight.to(tl.float32)[None, :], mask=inside)


@triton.jit
def rmsnorm_long(
    x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, cols, eps, RESIDUAL: tl.constexpr, BLOCK: tl.constexpr
):
    """One row by blocks, read twice."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        if RESIDUAL:
            x += tl.load(residual_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
            tl.store(sum_ptr + row * cols + at, x, mask=at < cols)
        total += x * x
    scale = tl.rsqrt(tl.sum(total, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0, eviction_policy="evict_first").to(
            tl.float32
        )
        if RESIDUAL:
            x += tl.load(residual_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0, eviction_policy="evict_last").to(
            tl.float32
        )
        tl.store(out_ptr + row * cols + at, x * scale * weight, mask=at < cols)


def tile(cols: int, size: int) -> tuple[int, int, int]:
    """Rows of a program, their columns as a power of two, and warps, for elements of `size` bytes.

    A thread asks for `lane_bytes` of the input before it waits for the first of them. Short rows share a
    program, so that it has four warps all the same.
    """
    block = triton.next_power_of_2(cols)
    warp = 32 * PARAMETERS["lane_bytes"]
    together = max(1, 4 * warp // (block * size))
    return together, block, min(max(together * block * size // warp, 1), 16)


def rmsnorm(
    x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, residual: torch.Tensor | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension.

    Args:
        x: any shape (..., cols).
        weight: (cols,).
        eps: added to the mean square.
        residual: of x's shape, added to x before the norm.

    Returns:
        The normalised tensor; with a residual also the sum, of x's dtype.
    """
    x, weight = x.contiguous(), weight.contiguous()
    cols, size = x.shape[-1], x.element_size()
    out = torch.empty_like(x)
    total = torch.empty_like(x) if residual is not None else out
    other = residual.contiguous() if residual is not None else x
    given = residual is not None
    rows = x.numel() // max(cols, 1)
    if rows and cols <= PARAMETERS["max_block"]:
        together, block, warps = tile(cols, size)
        rmsnorm_row[(triton.cdiv(rows, together),)](
            x, other, weight, total, out, rows, cols, eps,
            RESIDUAL=given, ROWS=together, BLOCK=block, num_warps=warps,
        )  # fmt: skip
    elif rows:
        _, block, warps = tile(PARAMETERS["block"], size)
        rmsnorm_long[(rows,)](
            x, other, weight, total, out, cols, eps, RESIDUAL=given, BLOCK=block, num_warps=warps
        )
    return (out, total) if residual is not None else out
