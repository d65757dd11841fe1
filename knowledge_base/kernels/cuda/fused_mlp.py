"""Gated MLP: both input products and the gate in one kernel, then the output product, in CUDA C++.

---
id: cuda-fused-mlp
language: cuda
title: Gated MLP with one pass over the input, on tensor cores
op_types: [gated_activation, gemm_epilogue]
functions: [gated_products, mlp]
sources: [fused_mlp.cu, products.cuh, tiles.cuh, rows.cuh]
good_for: >-
  LLaMA-style feed-forward blocks: silu(x @ gate) * (x @ up) is computed by tiles of 128 x 64 of both
  products, so that x is read once and neither product is written to memory.
limits: >-
  x is (rows, k), the weights are (hidden, k) as torch.nn.Linear keeps them, no bias. Rows that are no
  multiple of 16 bytes are read by single elements. float16 and bfloat16 on tensor cores by mma.sync, which
  is slower on Hopper than wgmma; float32 as float32. sm_80 and later; 60 KiB of shared memory; no gradient.
parameters:
  group: [8, 4, 16]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"group": 8}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
SHARED = 61440
"""Bytes of three steps of a tile."""
kernels = load(__file__, "fused_mlp.cu")


def whole(*tensors: torch.Tensor) -> bool:
    """True if the rows of all can be accessed by 16 bytes."""
    return all(x.shape[-1] * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0 for x in tensors)


def gated_products(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(x @ gate.T) * (x @ up.T) for x (rows, k) and weights (hidden, k); gives (rows, hidden)."""
    x, gate, up = x.contiguous(), gate.contiguous(), up.contiguous()
    (m, k), n = x.shape, gate.shape[0]
    if gate.shape != (n, k) or up.shape != (n, k):
        raise ValueError(f"x {tuple(x.shape)} does not fit gate {tuple(gate.shape)} and up {tuple(up.shape)}")
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        getattr(kernels, f"gated_{NAMES[x.dtype]}")(
            x, gate, up, out, m, n, k, PARAMETERS["group"], whole(x), whole(gate, up), whole(out),
            grid=-(-m // 128) * -(-n // 64), block=256, shared=SHARED,
        )  # fmt: skip
    return out


def mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """The block for x (..., k), gate and up (hidden, k), down (out, hidden); the last product is torch's."""
    found = gated_products(x.reshape(-1, x.shape[-1]), gate, up)
    return torch.nn.functional.linear(found, down).reshape(*x.shape[:-1], down.shape[0])
