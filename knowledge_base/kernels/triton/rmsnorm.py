"""RMSNorm over the last dimension, with an optional residual that is added first.

---
id: rmsnorm
title: RMSNorm, with the residual addition in the same pass
op_types: [norm]
functions: [rmsnorm]
good_for: >-
  Memory-bound normalisation: a row that fits one block is read once; the residual sum is written on the
  way, so that the addition before the norm costs no pass of its own.
limits: >-
  Last dimension, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32. Rows
  beyond max_block columns are read twice; no gradient.
parameters:
  max_block: [16384, 8192, 32768]
  block: [4096, 2048, 8192]
  num_warps: [8, 4, 16]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"max_block": 16384, "block": 4096, "num_warps": 8}


@triton.jit
def rmsnorm_row(
    x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, cols, eps, RESIDUAL: tl.constexpr, BLOCK: tl.constexpr
):
    """One row in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0).to(tl.float32)
    if RESIDUAL:
        x += tl.load(residual_ptr + row * cols + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(sum_ptr + row * cols + at, x, mask=inside)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * cols + at, x * scale * weight, mask=inside)


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
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        if RESIDUAL:
            x += tl.load(residual_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + at, x * scale * weight, mask=at < cols)


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
    cols = x.shape[-1]
    out = torch.empty_like(x)
    total = torch.empty_like(x) if residual is not None else out
    other = residual.contiguous() if residual is not None else x
    if x.numel():
        one = cols <= PARAMETERS["max_block"]
        kernel = rmsnorm_row if one else rmsnorm_long
        block = triton.next_power_of_2(cols) if one else PARAMETERS["block"]
        kernel[(x.numel() // cols,)](
            x, other, weight, total, out, cols, eps, RESIDUAL=residual is not None, BLOCK=block,
            num_warps=PARAMETERS["num_warps"] if block >= 2048 else 4,
        )  # fmt: skip
    return (out, total) if residual is not None else out
