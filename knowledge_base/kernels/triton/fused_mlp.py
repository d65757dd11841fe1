"""Gated MLP: both input products and the gate in one kernel, then the output product.

---
id: fused-mlp
title: Gated MLP with one pass over the input
op_types: [gated_activation, gemm_epilogue]
functions: [gated_products, mlp]
good_for: >-
  LLaMA-style feed-forward blocks: silu(x @ gate) * (x @ up) is computed tile by tile, so that x is read
  once for both products and neither of them is written to memory.
limits: >-
  x is (rows, k), the weights are (hidden, k) as torch.nn.Linear keeps them, no bias. Two accumulators
  take twice the registers of a product: the tiles are smaller than matmul's. float32 is multiplied as
  float32 unless precision is "tf32", by at least 8 warps: without tensor cores fewer would run out of
  registers. No gradient.
parameters:
  block_m: [64, 128, 32]
  block_n: [64, 128, 32]
  block_k: [32, 64]
  num_warps: [4, 8]
  num_stages: [3, 2, 4]
  precision: [ieee, tf32]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {
    "block_m": 64,
    "block_n": 64,
    "block_k": 32,
    "num_warps": 4,
    "num_stages": 3,
    "precision": "ieee",
}


@triton.jit
def gated_tile(
    x_ptr, gate_ptr, up_ptr, out_ptr, m, n, k,
    PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """One (M, N) tile of silu(x @ gate.T) * (x @ up.T)."""
    row = tl.program_id(1) * M + tl.arange(0, M)
    col = tl.program_id(0) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    x_at = x_ptr + row[:, None].to(tl.int64) * k + inner[None, :]
    weight_at = col[None, :].to(tl.int64) * k + inner[:, None]
    gate = tl.zeros((M, N), tl.float32)
    up = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = inner < k - start
        inside = left[:, None] & (col[None, :] < n)
        x = tl.load(x_at + start, mask=(row[:, None] < m) & left[None, :], other=0.0)
        of_gate = tl.load(gate_ptr + weight_at + start, mask=inside, other=0.0)
        of_up = tl.load(up_ptr + weight_at + start, mask=inside, other=0.0)
        gate = tl.dot(x, of_gate, gate, input_precision=PRECISION)
        up = tl.dot(x, of_up, up, input_precision=PRECISION)
    result = gate / (1.0 + tl.exp(-gate)) * up
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(out_ptr + row[:, None].to(tl.int64) * n + col[None, :], result, mask=inside)


def gated_products(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(x @ gate.T) * (x @ up.T) for x (rows, k) and weights (hidden, k); gives (rows, hidden)."""
    x, gate, up = x.contiguous(), gate.contiguous(), up.contiguous()
    (m, k), n, p = x.shape, gate.shape[0], PARAMETERS
    warps = p["num_warps"]
    if x.dtype is torch.float32 and p["precision"] == "ieee":
        warps = max(warps, 8)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        gated_tile[(triton.cdiv(n, p["block_n"]), triton.cdiv(m, p["block_m"]))](
            x, gate, up, out, m, n, k, PRECISION=p["precision"], M=p["block_m"], N=p["block_n"],
            K=p["block_k"], num_warps=warps, num_stages=p["num_stages"],
        )  # fmt: skip
    return out


def mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """The block for x (..., k), gate and up (hidden, k), down (out, hidden); the last product is torch's."""
    flat = x.reshape(-1, x.shape[-1])
    return torch.nn.functional.linear(gated_products(flat, gate, up), down).reshape(*x.shape[:-1], -1)
