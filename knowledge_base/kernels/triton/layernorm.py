"""LayerNorm over the last dimension, with optional weight and bias.

---
id: layernorm
title: LayerNorm, variance about the mean from registers
op_types: [norm]
functions: [layernorm]
good_for: >-
  Memory-bound normalisation: a row that fits one block is read once, short rows share a program, and the
  variance is that of the centred values, which no cancellation spoils. Longer rows take Welford's
  combination of blocks and a second read.
limits: >-
  Last dimension, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32; no
  gradient.
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
def affine(weight_ptr, bias_ptr, at, inside, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    """Weight and bias of some columns; 1 and 0 where there are none."""
    weight, bias = 1.0, 0.0
    if WEIGHT:
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
    if BIAS:
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
    return weight, bias


@triton.jit
def layernorm_row(
    x_ptr, weight_ptr, bias_ptr, out_ptr, rows, cols, eps,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`ROWS` whole rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)[None, :]
    at = row[:, None] * cols + col
    inside = (row[:, None] < rows) & (col < cols)
    x = tl.load(x_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    # Asked for before the reductions, whose barriers no load is moved across.
    weight, bias = affine(weight_ptr, bias_ptr, col, col < cols, WEIGHT, BIAS)
    centred = tl.where(inside, x - (tl.sum(x, axis=1) / cols)[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / cols + eps)
    tl.store(out_ptr + at, centred * scale[:, None] * weight + bias, mask=inside)


@triton.jit
def layernorm_long(
    x_ptr, weight_ptr, bias_ptr, out_ptr, cols, eps,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row by blocks; means and squared deviations are combined (Chan, Golub and LeVeque, 1983)."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    mean = 0.0
    deviation = 0.0
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        count = tl.minimum(cols - start, BLOCK).to(tl.float32)
        x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0).to(tl.float32)
        here = tl.sum(x, axis=0) / count
        off = tl.where(inside, x - here, 0.0)
        gap = here - mean
        seen = start + count
        deviation += tl.sum(off * off, axis=0) + gap * gap * (start * (count / seen))
        mean += gap * (count / seen)
    scale = tl.rsqrt(deviation / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0).to(tl.float32)
        weight, bias = affine(weight_ptr, bias_ptr, at, inside, WEIGHT, BIAS)
        tl.store(out_ptr + row * cols + at, (x - mean) * scale * weight + bias, mask=inside)


def tile(cols: int, size: int) -> tuple[int, int, int]:
    """Rows of a program, their columns as a power of two, and warps, for elements of `size` bytes.

    A thread asks for `lane_bytes` of the input before it waits for the first of them. Short rows share a
    program, so that it has four warps all the same.
    """
    block = triton.next_power_of_2(cols)
    warp = 32 * PARAMETERS["lane_bytes"]
    together = max(1, 4 * warp // (block * size))
    return together, block, min(max(together * block * size // warp, 1), 16)


def layernorm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float = 1e-5
) -> torch.Tensor:
    """LayerNorm of `x` (..., cols) over its last dimension; weight and bias are (cols,) or None."""
    x = x.contiguous()
    cols, size = x.shape[-1], x.element_size()
    out = torch.empty_like(x)
    rows = x.numel() // max(cols, 1)
    tensors = (x, x if weight is None else weight.contiguous(), x if bias is None else bias.contiguous(), out)
    given = {"WEIGHT": weight is not None, "BIAS": bias is not None}
    if rows and cols <= PARAMETERS["max_block"]:
        together, block, warps = tile(cols, size)
        layernorm_row[(triton.cdiv(rows, together),)](
            *tensors, rows, cols, eps, **given, ROWS=together, BLOCK=block, num_warps=warps
        )
    elif rows:
        _, block, warps = tile(PARAMETERS["block"], size)
        layernorm_long[(rows,)](*tensors, cols, eps, **given, BLOCK=block, num_warps=warps)
    return out
