"""RMSNorm and LayerNorm over the last dimension, in CUDA C++.

---
id: cuda-norms
language: cuda
title: RMSNorm and LayerNorm over rows, the row in shared memory
op_types: [norm]
functions: [rmsnorm, layernorm]
sources: [norms.cu, rows.cuh]
good_for: >-
  Memory-bound normalisation: one block a row, 16 bytes an access; a row that fits in shared memory is read
  once. LayerNorm's variance is that of the centred values, which no cancellation spoils.
limits: >-
  Last dimension, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32, weight
  and bias of the dtype of x; no gradient.
parameters:
  threads: [256, 128, 512, 1024]
  staged_bytes: [49152, 98304, 0]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 256, "staged_bytes": 49152}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
kernels = load(__file__, "norms.cu")


def _launch(name: str, x: torch.Tensor, weights: tuple[torch.Tensor | None, ...], eps: float) -> torch.Tensor:
    x = x.contiguous()
    cols = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel():
        staged = 4 * cols <= PARAMETERS["staged_bytes"]
        kernel = getattr(kernels, f"{name}_{NAMES[x.dtype]}")
        kernel(
            x, *(w if w is None else w.contiguous() for w in weights), out, cols, eps, staged,
            grid=x.numel() // cols, block=PARAMETERS["threads"], shared=4 * cols if staged else 0,
        )  # fmt: skip
    return out


def rmsnorm(x: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight for `x` (..., cols) over its last dimension."""
    return _launch("rmsnorm", x, (weight,), eps)


def layernorm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float = 1e-5
) -> torch.Tensor:
    """LayerNorm of `x` (..., cols) over its last dimension; weight and bias are (cols,) or None."""
    return _launch("layernorm", x, (weight, bias), eps)
