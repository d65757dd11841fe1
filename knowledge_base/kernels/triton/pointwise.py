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
  block: [1024, 2048, 4096, 512]
  num_warps: [4, 8]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block": 1024, "num_warps": 4}


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x)), which underflows to 0 and does not overflow."""
    return 1.0 / (1.0 + tl.exp(-x))


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
def chain(a_ptr, b_ptr, c_ptr, out_ptr, n, b_size, CHAIN: tl.constexpr, BLOCK: tl.constexpr):
    """out = CHAIN(a, b, c); b repeats every `b_size` elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(a_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at % b_size, mask=inside, other=0.0).to(tl.float32)
    c = tl.load(c_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, CHAIN(a, b, c), mask=inside)


@triton.jit
def chain_flat(a_ptr, b_ptr, out_ptr, n, CHAIN: tl.constexpr, BLOCK: tl.constexpr):
    """out = CHAIN(a, b, 0) of two tensors of one shape."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(a_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, CHAIN(a, b, 0.0), mask=inside)


def pointwise(function, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`function(a, b, 0)` for every element of two tensors of one shape, as one kernel."""
    a, b = a.contiguous(), b.contiguous()
    out, block = torch.empty_like(a), PARAMETERS["block"]
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
    out, block = torch.empty_like(x), PARAMETERS["block"]
    if x.numel():
        chain[(triton.cdiv(x.numel(), block),)](
            x, bias, residual, out, x.numel(), x.shape[-1], CHAIN=gelu_residual, BLOCK=block,
            num_warps=PARAMETERS["num_warps"],
        )  # fmt: skip
    return out
