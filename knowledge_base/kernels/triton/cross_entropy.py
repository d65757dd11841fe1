"""Cross-entropy of logits and class indices, in one read of the logits.

---
id: cross-entropy
title: Cross-entropy with a running maximum and sum
op_types: [cross_entropy]
functions: [cross_entropy]
good_for: >-
  Large vocabularies: the logits are read once and nothing of their size is written; eager makes a log-
  softmax of the logits' size first.
limits: >-
  (rows, classes) logits and (rows,) class indices, reductions mean, sum and none, ignore_index; no class
  weights, no label smoothing, no gradient. Losses are float32 before they are reduced by torch.
parameters:
  block: [4096, 2048, 8192, 16384]
  num_warps: [8, 4, 16]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block": 4096, "num_warps": 8}


@triton.jit
def cross_entropy_row(logits_ptr, target_ptr, loss_ptr, cols, ignored, BLOCK: tl.constexpr):
    """log(sum(exp(row))) - row[target], in float32; 0 where the target is to be ignored."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    target = tl.load(target_ptr + row)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(logits_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x, propagate_nan=tl.PropagateNan.ALL)
        fade = tl.where(top == higher, 1.0, tl.exp(top - higher))
        total = total * fade + tl.where(x == float("-inf"), 0.0, tl.exp(x - higher))
        top = higher
    peak = tl.max(top, axis=0)
    total = tl.sum(tl.where(top == float("-inf"), 0.0, total * tl.exp(top - peak)), axis=0)
    counts = (target != ignored) & (target >= 0) & (target < cols)
    chosen = tl.load(logits_ptr + row * cols + target, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(target == ignored, 0.0, tl.log(total) + peak - chosen))


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, reduction: str = "mean", ignore_index: int = -100
) -> torch.Tensor:
    """Cross-entropy of logits (rows, classes) and indices (rows,); a scalar, or (rows,) for `none`."""
    logits, target = logits.contiguous(), target.contiguous()
    rows, cols = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    block = min(PARAMETERS["block"], triton.next_power_of_2(cols))
    if rows:
        cross_entropy_row[(rows,)](
            logits, target, losses, cols, ignore_index, BLOCK=block, num_warps=PARAMETERS["num_warps"]
        )
    if reduction == "none":
        return losses.to(logits.dtype)
    total = losses.sum()
    if reduction == "mean":
        total = total / (target != ignore_index).sum()
    return total.to(logits.dtype)
