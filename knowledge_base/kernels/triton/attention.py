"""Attention without the matrix of scores: keys and values pass by tiles, with a running maximum and sum.

---
id: flash-attention
title: Attention by tiles (FlashAttention-2's forward pass)
op_types: [attention]
functions: [attention]
good_for: >-
  Long sequences: memory grows with the length and not with its square, and the scores never leave the
  chip. Causal masks skip the tiles above the diagonal, and only tiles on it are masked.
limits: >-
  q is (batch, heads, queries, head), k and v (batch, heads, keys, head), head sizes up to 256 (padded to
  a power of two), optional causal mask, no other mask, no dropout, no gradient. For causal masks with
  fewer queries than keys the mask is torch's (aligned at the top left). float32 is multiplied as float32
  unless precision is "tf32"; its tiles are smaller, since without tensor cores they must fit in registers.
parameters:
  block_m: [128, 64]
  block_n: [64, 32, 128]
  num_warps: [8, 4]
  num_stages: [3, 2, 4]
  precision: [ieee, tf32]
---
"""

import math

import torch
import triton
import triton.language as tl

PARAMETERS = {"block_m": 128, "block_n": 64, "num_warps": 8, "num_stages": 3, "precision": "ieee"}
LOG2E = 1.4426950408889634


@triton.jit
def over_keys(
    found, top, total, q, k_ptr, v_ptr, row, first, last, keys, size, scale,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, PADDED: tl.constexpr, PRECISION: tl.constexpr,
    N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Keys `first` to `last` by tiles of N; where they are not masked all are seen by all rows."""
    inner = tl.arange(0, D)
    for start in range(first, last, N):
        col = start + tl.arange(0, N)
        at = col.to(tl.int64) * size
        if MASKED or PADDED:
            here = (col < keys)[None, :] & (inner < size)[:, None]
            k = tl.load(k_ptr + at[None, :] + inner[:, None], mask=here, other=0.0)
        else:
            k = tl.load(k_ptr + at[None, :] + inner[:, None])
        scores = tl.dot(q, k, input_precision=PRECISION) * scale
        if MASKED:
            seen = (col < keys)[None, :]
            if CAUSAL:
                seen = seen & (col[None, :] <= row[:, None])
            scores = tl.where(seen, scores, float("-inf"))
        # Column 0 is seen by every row, so that after the first tile no maximum is -inf.
        higher = tl.maximum(top, tl.max(scores, axis=1), propagate_nan=tl.PropagateNan.ALL)
        fade = tl.exp2(top - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * fade + tl.sum(weights, axis=1)
        if MASKED or PADDED:
            here = (col < keys)[:, None] & (inner < size)[None, :]
            v = tl.load(v_ptr + at[:, None] + inner[None, :], mask=here, other=0.0)
        else:
            v = tl.load(v_ptr + at[:, None] + inner[None, :])
        found = tl.dot(weights.to(v.dtype), v, found * fade[:, None], input_precision=PRECISION)
        top = higher
    return found, top, total


@triton.jit
def attention_tile(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, size, scale,
    CAUSAL: tl.constexpr, PADDED: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """M queries of one head; the scale is that of powers of two."""
    # One number for all: a second axis of the grid ends at 65535 programs. The programs of a head follow one
    # another. With a causal mask its last rows have most work: they begin first.
    number, tiles = tl.program_id(0), tl.cdiv(queries, M)
    head = (number // tiles).to(tl.int64)
    tile = tiles - 1 - number % tiles
    row = tile * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    q_at = head * queries * size + row[:, None].to(tl.int64) * size + inner[None, :]
    inside = (row[:, None] < queries) & (inner[None, :] < size)
    q = tl.load(q_ptr + q_at, mask=inside, other=0.0)
    k_ptr += head * keys * size
    v_ptr += head * keys * size
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    found = tl.zeros((M, D), tl.float32)
    last = keys
    seen_by_all = keys
    if CAUSAL:
        last = tl.minimum(keys, (tile + 1) * M)
        seen_by_all = tl.minimum(keys, tile * M + 1)
    whole = seen_by_all // N * N
    found, top, total = over_keys(
        found, top, total, q, k_ptr, v_ptr, row, 0, whole, keys, size, scale,
        CAUSAL, False, PADDED, PRECISION, N, D,
    )  # fmt: skip
    found, top, total = over_keys(
        found, top, total, q, k_ptr, v_ptr, row, whole, last, keys, size, scale,
        CAUSAL, True, PADDED, PRECISION, N, D,
    )  # fmt: skip
    tl.store(out_ptr + q_at, found / total[:, None], mask=inside)


def blocks(x: torch.Tensor, size: int) -> tuple[int, int, int]:
    """Queries and keys of a tile, and warps, for heads of `size` elements of x's dtype."""
    p = PARAMETERS
    if x.element_size() == 2:
        return p["block_m"] if size <= 128 else 64, p["block_n"] if size <= 128 else 32, p["num_warps"]
    return 32, 32 if size <= 64 else 16, 8


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
    if k.shape != v.shape or k.shape != (batch, heads, k.shape[-2], size):
        raise ValueError(f"q {tuple(q.shape)} does not fit k {tuple(k.shape)} and v {tuple(v.shape)}")
    padded = max(16, triton.next_power_of_2(size))
    block_m, block_n, warps = blocks(q, padded)
    scale = LOG2E * (1 / math.sqrt(size) if scale is None else scale)
    out = torch.empty_like(q)
    if out.numel():
        attention_tile[(triton.cdiv(queries, block_m) * batch * heads,)](
            q, k, v, out, queries, k.shape[2], size, scale,
            CAUSAL=causal, PADDED=padded != size, PRECISION=p["precision"], M=block_m, N=block_n, D=padded,
            num_warps=warps, num_stages=p["num_stages"],
        )  # fmt: skip
    return out
