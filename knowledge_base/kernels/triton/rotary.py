"""Rotary position embedding of the two halves of each head.

---
id: rotary
title: Rotary embedding, both halves in one pass
op_types: [rope]
functions: [rotary]
good_for: >-
  Memory-bound rotations: eager reads and writes the tensor four times (two products, a rotation by
  copying, a sum); this does it once, and cos and sin are read once for all heads of a position.
limits: >-
  x is (batch, heads, positions, head) with an even head size up to 1024; cos and sin are (positions,
  head), the second half a copy of the first; the NeoX convention (halves, not neighbouring pairs).
  float32, float16 and bfloat16, computed in float32; no gradient.
parameters:
  block_heads: [8, 4, 16, 1]
  num_warps: [4, 2, 8]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block_heads": 8, "num_warps": 4}


@triton.jit
def rotary_heads(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, positions, half, HEADS: tl.constexpr, HALF: tl.constexpr
):
    """`HEADS` heads of one position of one sequence."""
    position = tl.program_id(0)
    batch = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    at = tl.arange(0, HALF)
    angle = position * half * 2 + at
    cos = tl.load(cos_ptr + angle, mask=at < half, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=at < half, other=0.0).to(tl.float32)
    first = ((batch * heads + head[:, None]) * positions + position) * half * 2 + at[None, :]
    inside = (head[:, None] < heads) & (at[None, :] < half)
    a = tl.load(x_ptr + first, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + first + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + first, a * cos[None, :] - b * sin[None, :], mask=inside)
    tl.store(out_ptr + first + half, b * cos[None, :] + a * sin[None, :], mask=inside)


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x * cos + rotate_half(x) * sin for x (batch, heads, positions, head), cos and sin (positions, head)."""
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, positions, size = x.shape
    out = torch.empty_like(x)
    width = min(PARAMETERS["block_heads"], triton.next_power_of_2(heads))
    if x.numel():
        rotary_heads[(positions, triton.cdiv(heads, width), batch)](
            x, cos, sin, out, heads, positions, size // 2, HEADS=width,
            HALF=triton.next_power_of_2(size // 2), num_warps=PARAMETERS["num_warps"],
        )  # fmt: skip
    return out
