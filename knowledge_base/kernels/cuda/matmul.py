"""Matrix product with bias and activation in the epilogue, in CUDA C++.

---
id: cuda-matmul
language: cuda
title: Matrix product with a fused epilogue, on tensor cores
op_types: [gemm, gemm_epilogue]
functions: [matmul]
sources: [matmul.cu, products.cuh, tiles.cuh, rows.cuh]
good_for: >-
  Products whose epilogue (bias, ReLU, GELU, SiLU) would else be a pass of its own over the result. Blocks
  compute tiles of 128 x 128, three steps of the sum under way by asynchronous copies of 16 bytes.
limits: >-
  Two-dimensional operands; the right one row by row or a weight's .t(), others are copied first. Sizes need
  not be multiples of the tile; rows that are no multiple of 16 bytes are read by single elements. float16
  and bfloat16 on tensor cores by mma.sync, which is slower on Hopper than wgmma; float32 as float32.
  sm_80 and later; 60 KiB of shared memory; no gradient.
parameters:
  group: [8, 4, 16]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"group": 8}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
ACTIVATIONS = ("", "relu", "gelu", "silu")
SHARED = 61440
"""Bytes of three steps of a tile."""
kernels = load(__file__, "matmul.cu")


def whole(x: torch.Tensor) -> bool:
    """True if the rows of `x` can be accessed by 16 bytes."""
    return x.shape[-1] * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def matmul(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, activation: str = ""
) -> torch.Tensor:
    """act(a @ b + bias).

    Args:
        a: (m, k).
        b: (k, n); a weight's `.t()` is fine.
        bias: (n,) or None.
        activation: empty, `relu`, `gelu` or `silu`.
    """
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k or (bias is not None and bias.shape != (n,)):
        raise ValueError(f"a {tuple(a.shape)} does not fit b {tuple(b.shape)} or the bias")
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        a, across = a.contiguous(), not b.t().is_contiguous()
        right = b.contiguous() if across else b.t()
        getattr(kernels, f"matmul_{NAMES[a.dtype]}")(
            a, right, bias if bias is None else bias.contiguous(), out, m, n, k, PARAMETERS["group"],
            ACTIVATIONS.index(activation), across, whole(a), whole(right), whole(out),
            grid=-(-m // 128) * -(-n // 128), block=256, shared=SHARED,
        )  # fmt: skip
    return out
