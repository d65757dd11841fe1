"""Softmax and log-softmax over the last dimension.

---
id: softmax
title: Softmax over rows, one read of the row
op_types: [softmax]
functions: [softmax]
good_for: >-
  Memory-bound rows: a row that fits one block is read once and written once. Longer rows are read twice,
  the first time with a running maximum and sum.
limits: >-
  Last dimension only, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32.
  Rows beyond max_block columns take the two-pass kernel; no gradient.
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
def softmax_row(x_ptr, out_ptr, cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """One row in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=inside, other=float("-inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    total = tl.sum(e, axis=0)
    y = x - tl.log(total) if LOG else e / total
    tl.store(out_ptr + row * cols + at, y, mask=inside)


@triton.jit
def softmax_long(x_ptr, out_ptr, cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """One row by blocks: every lane keeps a running maximum and sum of its own, combined at the end."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        # A lane that has seen nothing but -inf keeps its sum of 0: -inf - -inf is no number.
        fade = tl.where(top == higher, 1.0, tl.exp(top - higher))
        new = tl.where(x == float("-inf"), 0.0, tl.exp(x - higher))
        total = total * fade + new
        top = higher
    peak = tl.max(top, axis=0)
    total = tl.sum(tl.where(top == float("-inf"), 0.0, total * tl.exp(top - peak)), axis=0)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
        y = x - peak - tl.log(total) if LOG else tl.exp(x - peak) / total
        tl.store(out_ptr + row * cols + at, y, mask=at < cols)


def softmax(x: torch.Tensor, log: bool = False) -> torch.Tensor:
    """Softmax of `x` over its last dimension, or its logarithm; same shape and dtype."""
    x = x.contiguous()
    cols = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    rows = x.numel() // cols
    warps = PARAMETERS["num_warps"]
    if cols <= PARAMETERS["max_block"]:
        block = triton.next_power_of_2(cols)
        softmax_row[(rows,)](x, out, cols, LOG=log, BLOCK=block, num_warps=warps if block >= 2048 else 4)
    else:
        softmax_long[(rows,)](x, out, cols, LOG=log, BLOCK=PARAMETERS["block"], num_warps=warps)
    return out
