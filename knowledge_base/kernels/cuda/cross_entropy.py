"""Cross-entropy of logits and class indices, in CUDA C++.

---
id: cuda-cross-entropy
language: cuda
title: Cross-entropy with a running maximum and sum, one block a row
op_types: [cross_entropy]
functions: [cross_entropy]
sources: [cross_entropy.cu, rows.cuh]
good_for: >-
  Large vocabularies: the logits are read once, 16 bytes an access, and nothing of their size is written.
limits: >-
  (rows, classes) logits in float32, float16 or bfloat16 and (rows,) int64 class indices, reductions mean, sum
  and none, ignore_index; no class weights, no label smoothing, no gradient. A class out of range gives NaN.
parameters:
  threads: [512, 256, 1024]
---
"""

import torch
from agentforge_cuda import load

PARAMETERS = {"threads": 512}
NAMES = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}
kernels = load(__file__, "cross_entropy.cu")


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, reduction: str = "mean", ignore_index: int = -100
) -> torch.Tensor:
    """Cross-entropy of logits (rows, classes) and indices (rows,); a scalar, or (rows,) for `none`."""
    logits, target = logits.contiguous(), target.contiguous()
    rows, cols = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    name = NAMES[logits.dtype]
    if rows:
        kernel = getattr(kernels, f"cross_entropy_{name}")
        kernel(logits, target, losses, cols, ignore_index, grid=rows, block=PARAMETERS["threads"])
    if reduction == "none":
        return losses.to(logits.dtype)
    out = torch.empty(1, dtype=logits.dtype, device=logits.device)
    reduce = getattr(kernels, f"reduce_losses_{name}")
    reduce(losses, target, out, rows, ignore_index, reduction == "mean", grid=1, block=1024)
    return out.reshape(())
