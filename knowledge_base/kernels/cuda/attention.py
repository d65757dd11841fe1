"""Attention without the matrix of scores, in CUDA C++.

---
id: cuda-attention
language: cuda
title: Attention by tiles (FlashAttention-2's forward pass), on tensor cores
op_types: [attention]
functions: [attention]
sources: [attention.cu, tiles.cuh, rows.cuh]
good_for: >-
  Long sequences: memory grows with the length and not with its square, and the scores never leave the chip.
  A warp has 16 queries; keys come by asynchronous copies while values are used, and values while keys are.
  Causal masks skip the tiles above the diagonal.
limits: >-
  q is (batch, heads, queries, head), k and v (batch, heads, keys, head), head sizes up to 128 (padded to 64
  or 128), optional causal mask aligned at the top left, no other mask, no dropout, no gradient. float16 and
  bfloat16 on tensor cores by mma.sync, which is slower on Hopper than wgmma; float32 as float32. sm_80 and
  later; up to 81 KiB of shared memory. Heads that are no multiple of 16 bytes are read by single elements.
parameters:
  threads: [128, 64]
---
"""

import math

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 128}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
LOG2E = 1.4426950408889634
kernels = load(__file__, "attention.cu")


def shared_bytes(tile: int, size: int, x: torch.Tensor) -> int:
    """Shared memory for `tile` queries with heads of `size` elements: they, keys, values, and the scores."""
    step = 64 if x.element_size() == 2 else 32
    return (tile + 2 * step) * (size * x.element_size() + 16) + tile * (step + 8 + 20) * 4


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
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, queries, width = q.shape
    if k.shape != v.shape or k.shape != (batch, heads, k.shape[-2], width):
        raise ValueError(f"q {tuple(q.shape)} does not fit k {tuple(k.shape)} and v {tuple(v.shape)}")
    size, tile = 64 if width <= 64 else 128, PARAMETERS["threads"] // 2
    if width > 128:
        raise ValueError(f"heads of {width} elements are longer than 128")
    out = torch.empty_like(q)
    if out.numel():
        whole = width * q.element_size() % 16 == 0 and all(x.data_ptr() % 16 == 0 for x in (q, k, v))
        getattr(kernels, f"attention_{size}_{NAMES[q.dtype]}")(
            q, k, v, out, batch * heads, queries, k.shape[2], width,
            LOG2E * (1 / math.sqrt(width) if scale is None else scale), causal, whole,
            grid=-(-queries // tile) * batch * heads, block=2 * tile, shared=shared_bytes(tile, size, q),
        )  # fmt: skip
    return out
