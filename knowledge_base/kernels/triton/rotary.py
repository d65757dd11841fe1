"""Rotary position embedding of the two halves of each head.

---
id: rotary
title: Rotary embedding, both halves in one pass
op_types: [rope]
functions: [rotary]
good_for: >-
  Memory-bound rotations: eager reads and writes the tensor four times (two products, a rotation by
  copying, a sum); this does it once, and cos and sin are read once for several heads of a position.
limits: >-
  x is (batch, heads, positions, head) with an even head size up to 1024; cos and sin are (positions,
  head), the second half a copy of the first; the NeoX convention (halves, not neighbouring pairs).
  float32, float16 and bfloat16, computed in float32; no gradient.
parameters:
  block_heads: [2, 4, 1]
  num_warps: [4, 8, 2]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block_heads": 2, "num_warps": 4}
MOST = 65535
"""Programs along the third axis of a grid."""


@triton.jit
def rotary_heads(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, positions, half,
    HEADS: tl.constexpr, POSITIONS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Neighbouring positions, which lie side by side, of `HEADS` heads of one sequence."""
    position = (tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS))[None, :, None]
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[:, None, None]
    at = tl.arange(0, HALF)[None, None, :]
    here = (position < positions) & (at < half)
    angle = position * half * 2 + at
    cos = tl.load(cos_ptr + angle, mask=here, other=0.0, eviction_policy="evict_last").to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=here, other=0.0, eviction_policy="evict_last").to(tl.float32)
    row = (tl.program_id(2).to(tl.int64) * heads + head) * positions + position
    first = row * half * 2 + at
    inside = (head < heads) & here
    a = tl.load(x_ptr + first, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    b = tl.load(x_ptr + first + half, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    tl.store(out_ptr + first, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + first + half, b * cos + a * sin, mask=inside)


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x * cos + rotate_half(x) * sin for x (batch, heads, positions, head), cos and sin (positions, head)."""
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, positions, size = x.shape
    out = torch.empty_like(x)
    half = triton.next_power_of_2(size // 2)
    warps = PARAMETERS["num_warps"]
    # A thread has 16 bytes of each half of each head.
    long = max(1, 32 * warps * (16 // x.element_size()) // half)
    width = min(PARAMETERS["block_heads"], triton.next_power_of_2(heads))
    for start in range(0, batch if x.numel() else 0, MOST):
        some, turned = x[start : start + MOST], out[start : start + MOST]
        rotary_heads[(triton.cdiv(positions, long), triton.cdiv(heads, width), some.shape[0])](
            some, cos, sin, turned, heads, positions, size // 2, HEADS=width, POSITIONS=long, HALF=half,
            num_warps=warps,
        )  # fmt: skip
    return out
