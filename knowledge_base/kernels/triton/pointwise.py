"""Chains of pointwise operations as one kernel: a jitted function applied to up to three tensors.

---
id: pointwise
title: A pointwise chain in one pass
op_types: [pointwise, gated_activation]
functions: [pointwise, bias_gelu_residual, swiglu]
good_for: >-
  Memory-bound chains: eager reads and writes memory once for each operation, this once for all. Write the
  chain as a jitted function of scalars; it is inlined.
limits: >-
  Tensors of one shape, contiguous after .contiguous(); a bias over the last dimension by
  `bias_gelu_residual`. Computed in float32; no gradient.
parameters:
  lane_bytes: [32, 16, 64]
  num_warps: [4, 8]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"lane_bytes": 32, "num_warps": 4}


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)), which underflows to 0 and does not overflow; exp2 is one instruction, exp four."""
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def gelu(x):
    """GELU by the error function."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gated(gate, up, unused):
    """silu(gate) * up."""
    return gate * sigmoid(gate) * up


@triton.jit
def gelu_residual(x, bias, residual):
    """gelu(x + bias) + residual."""
    return gelu(x + bias) + residual


@triton.jit
def chain_rows(
    a_ptr, b_ptr, c_ptr, out_ptr, rows, cols,
    CHAIN: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """out = CHAIN(a, b, c) of `ROWS` by `COLS` elements; b is one row."""
    across = tl.cdiv(cols, COLS)
    row = (tl.program_id(0) // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(0) % across * COLS + tl.arange(0, COLS)
    at = row[:, None] * cols + col[None, :]
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    a = tl.load(a_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
    c = tl.load(c_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
    b = tl.load(b_ptr + col, mask=col < cols, other=0.0, eviction_policy="evict_last")[None, :]
    tl.store(out_ptr + at, CHAIN(a.to(tl.float32), b.to(tl.float32), c.to(tl.float32)), mask=inside)


@triton.jit
def chain_flat(a_ptr, b_ptr, out_ptr, n, CHAIN: tl.constexpr, BLOCK: tl.constexpr):
    """out = CHAIN(a, b, 0) of two tensors of one shape."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(a_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
    b = tl.load(b_ptr + at, mask=inside, other=0.0, eviction_policy="evict_first")
    tl.store(out_ptr + at, CHAIN(a.to(tl.float32), b.to(tl.float32), 0.0), mask=inside)


def elements(x: torch.Tensor) -> int:
    """Elements of a program: `lane_bytes` for each of its threads."""
    return 32 * PARAMETERS["num_warps"] * PARAMETERS["lane_bytes"] // x.element_size()


def pointwise(function, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`function(a, b, 0)` for every element of two tensors of one shape, as one kernel."""
    a, b = a.contiguous(), b.contiguous()
    out, block = torch.empty_like(a), elements(a)
    if a.numel():
        chain_flat[(triton.cdiv(a.numel(), block),)](
            a, b, out, a.numel(), CHAIN=function, BLOCK=block, num_warps=PARAMETERS["num_warps"]
        )
    return out


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up for tensors of one shape."""
    return pointwise(gated, gate, up)


def bias_gelu_residual(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """gelu(x + bias) + residual for x and residual (..., cols), bias (cols,)."""
    x, bias, residual = x.contiguous(), bias.contiguous(), residual.contiguous()
    out, cols, block = torch.empty_like(x), x.shape[-1], elements(x)
    if x.numel():
        rows, width = x.numel() // cols, min(triton.next_power_of_2(cols), block)
        chain_rows[(triton.cdiv(rows, block // width) * triton.cdiv(cols, width),)](
            x, bias, residual, out, rows, cols, CHAIN=gelu_residual, ROWS=block // width, COLS=width,
            num_warps=PARAMETERS["num_warps"],
        )  # fmt: skip
    return out
