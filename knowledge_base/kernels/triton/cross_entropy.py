"""Cross-entropy of logits and class indices, in one read of the logits.

---
id: cross-entropy
title: Cross-entropy with a running maximum and sum
op_types: [cross_entropy]
functions: [cross_entropy]
good_for: >-
  Large vocabularies: the logits are read once and nothing of their size is written; eager makes a log-
  softmax of the logits' size first. Sum or mean of the losses is a second, small launch.
limits: >-
  (rows, classes) logits and (rows,) class indices, reductions mean, sum and none, ignore_index; no class
  weights, no label smoothing, no gradient. Losses are float32 until they are stored.
parameters:
  block: [4096, 2048, 8192, 16384]
  lane_bytes: [32, 64, 16]
  stages: [1, 3]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"block": 4096, "lane_bytes": 32, "stages": 1}
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def taken(x, top, total):
    """Running maxima and sums of exp(x - maximum), a pair for each row of `x`, after its columns."""
    higher = tl.maximum(top, tl.max(x, axis=1))
    # Where all was -inf so far the sum stays 0: -inf - -inf is no number. A NaN reaches the sum.
    base = tl.where(higher == float("-inf"), 0.0, higher)
    fade = tl.exp2((top - base) * LOG2E)
    return higher, total * fade + tl.sum(tl.exp2((x - base[:, None]) * LOG2E), axis=1)


@triton.jit
def cross_entropy_row(
    logits_ptr, target_ptr, loss_ptr, cols, ignored,
    ALIGNED: tl.constexpr, BLOCK: tl.constexpr, VEC: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """log(sum(exp(row))) - row[target]; 0 where the target is to be ignored.

    `VEC` neighbours that one access loads share a maximum: a thread takes one exponential for each logit.
    """
    row = tl.program_id(0).to(tl.int64)
    begin = row * cols
    target = tl.load(target_ptr + row)
    counts = (target != ignored) & (target >= 0) & (target < cols)
    chosen = tl.load(logits_ptr + begin + target, mask=counts, other=0.0).to(tl.float32)
    lane = tl.arange(0, BLOCK // VEC)[:, None] * VEC + tl.arange(0, VEC)[None, :]
    top = tl.full((BLOCK // VEC,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK // VEC,), tl.float32)
    # Wide accesses begin at a multiple of `VEC`: the logits before the first one come last, with the tail.
    head = 0
    if not ALIGNED:
        head = ((VEC - begin % VEC) % VEC).to(tl.int32)
    whole = (cols - head) // BLOCK * BLOCK
    first = tl.multiple_of(begin + head, VEC)
    for start in tl.range(0, whole, BLOCK, num_stages=STAGES):
        x = tl.load(logits_ptr + first + start + lane, eviction_policy="evict_first").to(tl.float32)
        top, total = taken(x, top, total)
    for start in range(whole, cols, BLOCK):
        at = start + lane
        if not ALIGNED:
            at = tl.where(at - whole < head, at - whole, at)
        x = tl.load(logits_ptr + begin + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        top, total = taken(x, top, total)
    peak = tl.max(top, axis=0)
    base = tl.where(peak == float("-inf"), 0.0, peak)
    total = tl.sum(total * tl.exp2((top - base) * LOG2E), axis=0)
    tl.store(loss_ptr + row, tl.where(target == ignored, 0.0, tl.log(total) + base - chosen))


@triton.jit
def reduce_losses(loss_ptr, target_ptr, out_ptr, rows, ignored, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    """Their sum, or mean over the targets that count, in a fixed order: one program."""
    lane = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    counted = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + lane
        total += tl.load(loss_ptr + at, mask=at < rows, other=0.0)
        if MEAN:
            target = tl.load(target_ptr + at, mask=at < rows, other=ignored)
            counted += tl.where((target != ignored) & (at < rows), 1.0, 0.0)
    found = tl.sum(total, axis=0)
    if MEAN:
        found = found / tl.sum(counted, axis=0)
    tl.store(out_ptr, found)


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, reduction: str = "mean", ignore_index: int = -100
) -> torch.Tensor:
    """Cross-entropy of logits (rows, classes) and indices (rows,); a scalar, or (rows,) for `none`."""
    logits, target, p = logits.contiguous(), target.contiguous(), PARAMETERS
    (rows, cols), size = logits.shape, logits.element_size()
    alone = reduction == "none"
    losses = torch.empty(rows, dtype=logits.dtype if alone else torch.float32, device=logits.device)
    vec = 16 // size
    block = max(min(p["block"], triton.next_power_of_2(cols)), vec)
    if rows:
        cross_entropy_row[(rows,)](
            logits, target, losses, cols, ignore_index, ALIGNED=cols % vec == 0, BLOCK=block, VEC=vec,
            STAGES=p["stages"], num_warps=min(max(block * size // (32 * p["lane_bytes"]), 1), 16),
        )  # fmt: skip
    if alone:
        return losses
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    reduce_losses[(1,)](
        losses, target, out, rows, ignore_index, MEAN=reduction == "mean", BLOCK=4096, num_warps=16
    )
    return out
