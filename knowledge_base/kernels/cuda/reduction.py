"""Sum, mean and maximum over the last dimension or over everything, in CUDA C++.

---
id: cuda-reduction
language: cuda
title: Deterministic reductions without atomics, one block a row or piece
op_types: [reduction]
functions: [reduce_rows, reduce_all]
sources: [reduction.cu, rows.cuh]
good_for: >-
  Memory-bound reductions: each element is read once, 16 bytes an access; partial results are combined in a
  fixed order, so that the same input always gives the same bits. A full reduction takes two launches.
limits: >-
  Contiguous after .contiguous(); float32, float16 and bfloat16, accumulated in float32; a NaN is the maximum,
  as in torch; not over the first dimension; no gradient.
parameters:
  threads: [256, 512, 1024, 128]
  piece: [32768, 16384, 65536]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 256, "piece": 32768}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
kernels = load(__file__, "reduction.cu")


def _reduce(kernel, x: torch.Tensor, piece: int, scale: float, how: str, dtype: torch.dtype) -> torch.Tensor:
    """Pieces of the rows of a matrix, each reduced: (rows, pieces)."""
    rows, cols = x.shape
    pieces = -(-cols // piece)
    out = torch.empty((rows, pieces), dtype=dtype, device=x.device)
    kernel(x, out, cols, piece, scale, how == "max", grid=(rows, pieces), block=PARAMETERS["threads"])
    return out


def reduce_rows(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of `x` (..., cols) over its last dimension."""
    flat = x.contiguous().reshape(-1, x.shape[-1])
    kernel = getattr(kernels, f"reduce_{NAMES[x.dtype]}")
    scale = 1.0 / flat.shape[1] if how == "mean" else 1.0
    return _reduce(kernel, flat, flat.shape[1], scale, how, x.dtype).reshape(x.shape[:-1])


def reduce_all(x: torch.Tensor, how: str = "sum") -> torch.Tensor:
    """`sum`, `mean` or `max` of all elements; a 0-d tensor."""
    flat = x.contiguous().reshape(1, -1)
    first = (
        kernels.reduce_float if x.dtype == torch.float32 else getattr(kernels, f"partial_{NAMES[x.dtype]}")
    )
    piece = max(PARAMETERS["piece"], -(-flat.shape[1] // 65535))  # the grid's limit
    partial = _reduce(first, flat, piece, 1.0, how, torch.float32)
    scale = 1.0 / flat.shape[1] if how == "mean" else 1.0
    return (
        _reduce(kernels.reduce_float, partial, partial.shape[1], scale, how, torch.float32)
        .reshape(())
        .to(x.dtype)
    )
