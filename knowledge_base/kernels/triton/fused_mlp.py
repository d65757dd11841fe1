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
  take twice the registers of a product: the tiles are smaller than matmul's, and for float32, which is
  multiplied as float32 unless precision is "tf32", smaller again. No gradient.
parameters:
  block_m: [128, 64]
  block_n: [128, 64]
  block_k: [64, 32]
  group: [8, 4, 16]
  num_stages: [3, 4, 2]
  precision: [ieee, tf32]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {
    "block_m": 128,
    "block_n": 128,
    "block_k": 64,
    "group": 8,
    "num_stages": 3,
    "precision": "ieee",
}
PROCESSORS = 132
"""Of an H100; smaller GPUs are filled all the more."""


@triton.jit
def gated_tile(
    x_ptr, gate_ptr, up_ptr, out_ptr, m, n, k, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """One (M, N) tile of silu(x @ gate.T) * (x @ up.T); groups of rows share weights in the L2 cache."""
    number = tl.program_id(0)
    of_group = GROUP * tl.cdiv(n, N)
    first = number // of_group * GROUP
    height = tl.minimum(tl.cdiv(m, M) - first, GROUP)
    row = (first + number % of_group % height) * M + tl.arange(0, M)
    col = number % of_group // height * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    # Rows and columns beyond the end compute others again, and are not stored: no mask in the loop.
    x_at = x_ptr + (row % m)[:, None].to(tl.int64) * k + inner[None, :]
    weight_at = (col % n)[None, :].to(tl.int64) * k + inner[:, None]
    gate = tl.zeros((M, N), tl.float32)
    up = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        if EVEN:
            x = tl.load(x_at + start)
            of_gate = tl.load(gate_ptr + weight_at + start)
            of_up = tl.load(up_ptr + weight_at + start)
        else:
            left = inner < k - start
            x = tl.load(x_at + start, mask=left[None, :], other=0.0)
            of_gate = tl.load(gate_ptr + weight_at + start, mask=left[:, None], other=0.0)
            of_up = tl.load(up_ptr + weight_at + start, mask=left[:, None], other=0.0)
        gate = tl.dot(x, of_gate, gate, input_precision=PRECISION)
        up = tl.dot(x, of_up, up, input_precision=PRECISION)
    result = gate / (1.0 + tl.exp2(gate * -1.4426950408889634)) * up
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(out_ptr + row[:, None].to(tl.int64) * n + col[None, :], result, mask=inside)


def blocks(m: int, n: int, x: torch.Tensor) -> tuple[int, int, int, int]:
    """Blocks of rows, columns and the inner dimension, and warps, for an (m, n) result of x's dtype."""
    height, width, depth = (PARAMETERS[name] for name in ("block_m", "block_n", "block_k"))
    if x.element_size() > 2:
        height, width, depth = min(height, 64), min(width, 64), min(depth, 32)
    while max(height, width) > 64 and triton.cdiv(m, height) * triton.cdiv(n, width) < PROCESSORS:
        height, width = (height, width // 2) if width >= height else (height // 2, width)
    return height, width, depth, 8 if height * width >= 16384 or x.element_size() > 2 else 4


def gated_products(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(x @ gate.T) * (x @ up.T) for x (rows, k) and weights (hidden, k); gives (rows, hidden)."""
    x, gate, up = x.contiguous(), gate.contiguous(), up.contiguous()
    (m, k), n, p = x.shape, gate.shape[0], PARAMETERS
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel():
        height, width, depth, warps = blocks(m, n, x)
        gated_tile[(triton.cdiv(m, height) * triton.cdiv(n, width),)](
            x, gate, up, out, m, n, k, PRECISION=p["precision"], M=height, N=width, K=depth,
            GROUP=p["group"], EVEN=k % depth == 0, num_warps=warps, num_stages=p["num_stages"],
        )  # fmt: skip
    return out


def mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """The block for x (..., k), gate and up (hidden, k), down (out, hidden); the last product is torch's."""
    flat = x.reshape(-1, x.shape[-1])
    return torch.nn.functional.linear(gated_products(flat, gate, up), down).reshape(*x.shape[:-1], -1)
