"""Attention without the matrix of scores: keys and values pass by tiles, with a running maximum and sum.

---
id: flash-attention
title: Attention by tiles (FlashAttention-2's forward pass)
op_types: [attention]
functions: [attention]
good_for: >-
  Long sequences: memory grows with the length and not with its square, and the scores never leave the
  chip. Causal masks skip the tiles above the diagonal.
limits: >-
  q is (batch, heads, queries, head), k and v (batch, heads, keys, head), head sizes up to 256 (padded to
  a power of two), optional causal mask, no other mask, no dropout, no gradient. For causal masks with
  fewer queries than keys the mask is torch's (aligned at the top left). float32 is multiplied as float32
  unless precision is "tf32"; without tensor cores the tiles must be small and the warps many to fit in
  registers: at most 32 queries and at least 8 warps.
parameters:
  block_m: [64, 128, 32]
  block_n: [32, 64, 128]
  num_warps: [4, 8]
  num_stages: [2, 3, 1]
  precision: [ieee, tf32]
---
"""

import math

import torch
import triton
import triton.language as tl

PARAMETERS = {"block_m": 64, "block_n": 32, "num_warps": 4, "num_stages": 2, "precision": "ieee"}


@triton.jit
def attention_tile(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, size, scale,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """M queries of one head."""
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    q_at = head * queries * size + row[:, None].to(tl.int64) * size + inner[None, :]
    inside = (row[:, None] < queries) & (inner[None, :] < size)
    q = tl.load(q_ptr + q_at, mask=inside, other=0.0)
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    found = tl.zeros((M, D), tl.float32)
    last = keys
    if CAUSAL:
        last = tl.minimum(keys, (tl.program_id(0) + 1) * M)
    for start in range(0, last, N):
        col = start + tl.arange(0, N)
        at = head * keys * size + col.to(tl.int64) * size
        here = (col[None, :] < keys) & (inner[:, None] < size)
        k = tl.load(k_ptr + at[None, :] + inner[:, None], mask=here, other=0.0)
        scores = tl.dot(q, k, input_precision=PRECISION) * scale
        seen = col[None, :] < keys
        if CAUSAL:
            seen = seen & (col[None, :] <= row[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        # Column 0 is seen by every row, so that after the first tile no maximum is -inf.
        higher = tl.maximum(top, tl.max(scores, axis=1), propagate_nan=tl.PropagateNan.ALL)
        fade = tl.exp(top - higher)
        weights = tl.exp(scores - higher[:, None])
        total = total * fade + tl.sum(weights, axis=1)
        here = (col[:, None] < keys) & (inner[None, :] < size)
        v = tl.load(v_ptr + at[:, None] + inner[None, :], mask=here, other=0.0)
        found = tl.dot(weights.to(v.dtype), v, found * fade[:, None], input_precision=PRECISION)
        top = higher
    tl.store(out_ptr + q_at, found / total[:, None], mask=inside)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None
) -> torch.Tensor:
    """softmax(q @ k.T * scale) @ v.

    Args:
        q: (batch, heads, queries, head).
        k: (batch, heads, keys, head).
        v: (batch, heads, keys, head).
        causal: query i sees the keys 0 to i.
        scale: None for 1 / sqrt(head).
    """
    q, k, v, p = q.contiguous(), k.contiguous(), v.contiguous(), PARAMETERS
    batch, heads, queries, size = q.shape
    block_m, warps = p["block_m"], p["num_warps"]
    if q.dtype is torch.float32 and p["precision"] == "ieee":
        block_m, warps = min(block_m, 32), max(warps, 8)
    out = torch.empty_like(q)
    if out.numel():
        attention_tile[(triton.cdiv(queries, block_m), batch * heads)](
            q, k, v, out, queries, k.shape[2], size, 1 / math.sqrt(size) if scale is None else scale,
            CAUSAL=causal, PRECISION=p["precision"], M=block_m, N=p["block_n"],
            D=max(16, triton.next_power_of_2(size)), num_warps=warps, num_stages=p["num_stages"],
        )  # fmt: skip
    return out
