"""Rotary position embedding of the two halves of each head, in CUDA C++.

---
id: cuda-rotary
language: cuda
title: Rotary embedding, both halves in one pass
op_types: [rope]
functions: [rotary]
sources: [rotary.cu, rows.cuh]
good_for: >-
  Memory-bound rotations: one pass, 16 bytes an access; a thread reads cos and sin once for several heads.
limits: >-
  x is (batch, heads, positions, head) with an even head size; cos and sin are (positions, head), the second
  half a copy of the first; the NeoX convention (halves, not neighbouring pairs). float32, float16 and
  bfloat16, cos and sin of the dtype of x, computed in float32; no gradient. Halves that are no multiple of
  16 bytes are read by single elements.
parameters:
  threads: [128, 256, 64]
  group: [4, 2, 8, 1]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 128, "group": 4}
MOST = 65535
"""Blocks along the third axis of a grid."""
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
kernels = load(__file__, "rotary.cu")


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x * cos + rotate_half(x) * sin for x (batch, heads, positions, head), cos and sin (positions, head)."""
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, positions, size = x.shape
    if size % 2 or cos.shape != (positions, size) or sin.shape != (positions, size):
        raise ValueError(f"x {tuple(x.shape)} does not fit cos {tuple(cos.shape)} and sin {tuple(sin.shape)}")
    out = torch.empty_like(x)
    if x.numel():
        threads, group = PARAMETERS["threads"], PARAMETERS["group"]
        wide = 16 // x.element_size()
        whole = size // 2 % wide == 0 and all(t.data_ptr() % 16 == 0 for t in (x, cos, sin))
        packs = size // 2 // wide if whole else size // 2
        for start in range(0, batch, MOST):
            some, turned = x[start : start + MOST], out[start : start + MOST]
            getattr(kernels, f"rotary_{NAMES[x.dtype]}")(
                some, cos, sin, turned, heads, positions, size // 2, group, whole,
                grid=(-(-positions * packs // threads), -(-heads // group), some.shape[0]), block=threads,
            )  # fmt: skip
    return out
