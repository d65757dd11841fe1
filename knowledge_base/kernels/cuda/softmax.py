"""Softmax and log-softmax over the last dimension, in CUDA C++.

---
id: cuda-softmax
language: cuda
title: Softmax over rows, the row in shared memory
op_types: [softmax]
functions: [softmax]
sources: [softmax.cu, rows.cuh]
good_for: >-
  Memory-bound rows: one block a row, 16 bytes an access; a row that fits in shared memory is read once.
  Longer ones are read twice, the first time with a running maximum and sum.
limits: >-
  Last dimension only, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32.
  Rows of few columns leave most threads of a block idle; no gradient.
parameters:
  threads: [256, 128, 512, 1024]
  staged_bytes: [49152, 98304, 0]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 256, "staged_bytes": 49152}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
kernels = load(__file__, "softmax.cu")


def softmax(x: torch.Tensor, log: bool = False) -> torch.Tensor:
    """Softmax of `x` (..., cols) over its last dimension; its logarithm with `log`."""
    x = x.contiguous()
    cols = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel():
        staged = 4 * cols <= PARAMETERS["staged_bytes"]
        kernel = getattr(kernels, f"softmax_{NAMES[x.dtype]}")
        kernel(
            x, out, cols, log, staged,
            grid=x.numel() // cols, block=PARAMETERS["threads"], shared=4 * cols if staged else 0,
        )  # fmt: skip
    return out
