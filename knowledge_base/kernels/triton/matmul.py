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
  bare float32 product. Blocks are halved where there would be too few of them for the GPU's processors,
  and for float32, which has less room.
parameters:
  block_m: [128, 64, 256]
  block_n: [256, 128, 64]
  block_k: [64, 32, 128]
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
    "block_n": 256,
    "block_k": 64,
    "group": 8,
    "num_stages": 3,
    "precision": "ieee",
}
PROCESSORS = 132
"""Of an H100; smaller GPUs are filled all the more."""


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """The named activation, in float32."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "silu":
        x = x / (1.0 + tl.exp2(x * -1.4426950408889634))
    return x


@triton.jit
def product(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, a_col, b_row, b_col,
    ACTIVATION: tl.constexpr, BIAS: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
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
    # Rows and columns beyond the end compute others again, and are not stored: no mask in the loop.
    row_at, col_at, inner_at = (row % m).to(tl.int64), (col % n).to(tl.int64), inner.to(tl.int64)
    a_at = a_ptr + row_at[:, None] * a_row + inner_at[None, :] * a_col
    b_at = b_ptr + inner_at[:, None] * b_row + col_at[None, :] * b_col
    step = tl.full((), K, tl.int64)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        if EVEN:
            a = tl.load(a_at)
            b = tl.load(b_at)
        else:
            a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
            b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
        a_at += step * a_col
        b_at += step * b_row
    if BIAS:
        total += tl.load(bias_ptr + col, mask=col < n, other=0.0).to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(out_ptr + row[:, None].to(tl.int64) * n + col[None, :], total, mask=inside)


def blocks(m: int, n: int, x: torch.Tensor, activation: str) -> tuple[int, int, int, int]:
    """Blocks of rows, columns and the inner dimension, and warps, for an (m, n) result of x's dtype."""
    height, width, depth = (PARAMETERS[name] for name in ("block_m", "block_n", "block_k"))
    if x.element_size() > 2:
        height, width, depth = min(height, 128), min(width, 128), min(depth, 32)
    if activation == "gelu":  # the error function needs registers beside the accumulators
        width = min(width, 128)
    while max(height, width) > 64 and triton.cdiv(m, height) * triton.cdiv(n, width) < PROCESSORS:
        height, width = (height, width // 2) if width >= height else (height // 2, width)
    return height, width, depth, 8 if height * width >= 16384 or x.element_size() > 2 else 4


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
    height, width, depth, warps = blocks(m, n, a, activation)
    product[(triton.cdiv(m, height) * triton.cdiv(n, width),)](
        a, b, out if bias is None else bias.contiguous(), out, m, n, k, *a.stride(), *b.stride(),
        ACTIVATION=activation, BIAS=bias is not None, PRECISION=p["precision"], M=height, N=width, K=depth,
        GROUP=p["group"], EVEN=k % depth == 0, num_warps=warps, num_stages=p["num_stages"],
    )  # fmt: skip
    return out
