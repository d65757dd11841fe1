"""LayerNorm over the last dimension, with optional weight and bias.

---
id: layernorm
title: LayerNorm, variance about the mean from registers
op_types: [norm]
functions: [layernorm]
good_for: >-
  Memory-bound normalisation: a row that fits one block is read once, and its variance is that of the
  centred values, which no cancellation spoils. Longer rows take Welford's combination of blocks and a
  second read.
limits: >-
  Last dimension, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32; no
  gradient.
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
def scaled(y, weight_ptr, bias_ptr, at, inside, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    """y * weight + bias."""
    if WEIGHT:
        y = y * tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    if BIAS:
        y = y + tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    return y


@triton.jit
def layernorm_row(
    x_ptr, weight_ptr, bias_ptr, out_ptr, cols, eps,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / cols, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    y = scaled(centred * scale, weight_ptr, bias_ptr, at, inside, WEIGHT, BIAS)
    tl.store(out_ptr + row * cols + at, y, mask=inside)


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
        y = scaled((x - mean) * scale, weight_ptr, bias_ptr, at, inside, WEIGHT, BIAS)
        tl.store(out_ptr + row * cols + at, y, mask=inside)


def layernorm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float = 1e-5
) -> torch.Tensor:
    """LayerNorm of `x` (..., cols) over its last dimension; weight and bias are (cols,) or None."""
    x = x.contiguous()
    cols = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel():
        one = cols <= PARAMETERS["max_block"]
        kernel = layernorm_row if one else layernorm_long
        block = triton.next_power_of_2(cols) if one else PARAMETERS["block"]
        kernel[(x.numel() // cols,)](
            x, x if weight is None else weight.contiguous(), x if bias is None else bias.contiguous(), out,
            cols, eps, WEIGHT=weight is not None, BIAS=bias is not None, BLOCK=block,
            num_warps=PARAMETERS["num_warps"] if block >= 2048 else 4,
        )  # fmt: skip
    return out
