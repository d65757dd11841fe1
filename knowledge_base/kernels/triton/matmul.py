"""Matrix product with bias and activation in the epilogue.

---
id: matmul
title: Matrix product with a fused epilogue
op_types: [gemm, gemm_epilogue]
functions: [matmul]
good_for: >-
  Products whose epilogue (bias, ReLU, GELU, SiLU) would else be a pass of its own over the result; half-
  precision products on tensor cores. Programs run in groups of rows, so that both operands stay in the L2
  cache.
limits: >-
  Two-dimensional operands of any strides, sizes need not be multiples of the blocks. float32 is
  multiplied as float32 ("ieee") unless precision is "tf32"; the vendor's library is usually faster for a
  bare float32 product.
parameters:
  block_m: [128, 64, 256]
  block_n: [128, 64, 256]
  block_k: [32, 64, 16]
  group: [8, 4, 16]
  num_warps: [8, 4]
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
    "block_k": 32,
    "group": 8,
    "num_warps": 8,
    "num_stages": 3,
    "precision": "ieee",
}


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """The named activation, in float32."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "silu":
        x = x / (1.0 + tl.exp(-x))
    return x


@triton.jit
def product(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, a_col, b_row, b_col,
    ACTIVATION: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One (M, N) tile of act(a @ b + bias)."""
    number = tl.program_id(0)
    across = tl.cdiv(n, N)
    of_group = GROUP * across
    first = number // of_group * GROUP
    height = tl.minimum(tl.cdiv(m, M) - first, GROUP)
    row = (first + number % of_group % height) * M + tl.arange(0, M)
    col = number % of_group // height * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    a_at = a_ptr + row[:, None].to(tl.int64) * a_row + inner[None, :] * a_col
    b_at = b_ptr + inner[:, None].to(tl.int64) * b_row + col[None, :] * b_col
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = inner < k - start
        a = tl.load(a_at, mask=(row[:, None] < m) & left[None, :], other=0.0)
        b = tl.load(b_at, mask=left[:, None] & (col[None, :] < n), other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
        a_at += K * a_col
        b_at += K * b_row
    if BIAS:
        total += tl.load(bias_ptr + col, mask=col < n, other=0.0).to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(out_ptr + row[:, None].to(tl.int64) * n + col[None, :], total, mask=inside)


def matmul(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, activation: str = ""
) -> torch.Tensor:
    """act(a @ b + bias).

    Args:
        a: (m, k), any strides.
        b: (k, n), any strides (a weight's `.t()` is fine).
        bias: (n,) or None.
        activation: empty, `relu`, `gelu` or `silu`.
    """
    (m, k), n, p = a.shape, b.shape[1], PARAMETERS
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    product[(triton.cdiv(m, p["block_m"]) * triton.cdiv(n, p["block_n"]),)](
        a, b, out if bias is None else bias.contiguous(), out, m, n, k, *a.stride(), *b.stride(),
        ACTIVATION=activation, BIAS=bias is not None, PRECISION=p["precision"],
        M=p["block_m"], N=p["block_n"], K=p["block_k"], GROUP=p["group"],
        num_warps=p["num_warps"], num_stages=p["num_stages"],
    )  # fmt: skip
    return out
