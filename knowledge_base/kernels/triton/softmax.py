"""Softmax and log-softmax over the last dimension.

---
id: softmax
title: Softmax over rows, one read of the row
op_types: [softmax]
functions: [softmax]
good_for: >-
  Memory-bound rows: a row that fits one block is read once and written once, short rows share a program.
  Longer rows are read twice, the first time with a running maximum and sum.
limits: >-
  Last dimension only, contiguous after .contiguous(); float32, float16 and bfloat16, computed in float32.
  Rows beyond max_block columns take the two-pass kernel; no gradient.
parameters:
  max_block: [16384, 8192, 32768]
  block: [4096, 2048, 8192]
  lane_bytes: [32, 64, 16]
---
"""

import torch
import triton
import triton.language as tl

PARAMETERS = {"max_block": 16384, "block": 4096, "lane_bytes": 32}
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_row(x_ptr, out_ptr, rows, cols, LOG: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """`ROWS` whole rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    at = row[:, None] * cols + col[None, :]
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    x = tl.load(x_ptr + at, mask=inside, other=float("-inf"), eviction_policy="evict_first").to(tl.float32)
    x = x - tl.max(x, axis=1)[:, None]
    # exp2 is one instruction; exp takes four, for results too small to matter here.
    e = tl.exp2(x * LOG2E)
    total = tl.sum(e, axis=1)
    y = x - tl.log(total)[:, None] if LOG else e * (1.0 / total)[:, None]
    tl.store(out_ptr + at, y, mask=inside)


@triton.jit
def placed(at, whole, head, ALIGNED: tl.constexpr):
    """Where the tail's positions lie: its first `head` are those before the first wide access."""
    if not ALIGNED:
        at = tl.where(at - whole < head, at - whole, at)
    return at


@triton.jit
def taken(x, top, total):
    """Running maxima and sums of exp(x - maximum), a pair for each row of `x`, after its columns."""
    higher = tl.maximum(top, tl.max(x, axis=1))
    # Where all was -inf so far the sum stays 0: -inf - -inf is no number. A NaN reaches the sum.
    base = tl.where(higher == float("-inf"), 0.0, higher)
    fade = tl.exp2((top - base) * LOG2E)
    return higher, total * fade + tl.sum(tl.exp2((x - base[:, None]) * LOG2E), axis=1)


@triton.jit
def softmax_long(
    x_ptr, out_ptr, cols,
    LOG: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr, VEC: tl.constexpr,
):  # fmt: skip
    """One row by blocks: a running maximum and sum for every `VEC` neighbours, combined at the end."""
    begin = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK // VEC)[:, None] * VEC + tl.arange(0, VEC)[None, :]
    top = tl.full((BLOCK // VEC,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK // VEC,), tl.float32)
    # Wide accesses begin at a multiple of `VEC`: the elements before the first one come with the tail.
    head = 0
    if not ALIGNED:
        head = ((VEC - begin % VEC) % VEC).to(tl.int32)
    whole = (cols - head) // BLOCK * BLOCK
    first = tl.multiple_of(begin + head, VEC)
    for start in range(0, whole, BLOCK):
        x = tl.load(x_ptr + first + start + lane).to(tl.float32)
        top, total = taken(x, top, total)
    for start in range(whole, cols, BLOCK):
        at = placed(start + lane, whole, head, ALIGNED)
        x = tl.load(x_ptr + begin + at, mask=start + lane < cols, other=float("-inf")).to(tl.float32)
        top, total = taken(x, top, total)
    peak = tl.max(top, axis=0)
    total = tl.sum(tl.where(top == float("-inf"), total, total * tl.exp2((top - peak) * LOG2E)), axis=0)
    scale = 1.0 / total
    shift = tl.log(total)
    for start in range(0, whole, BLOCK):
        at = first + start + lane
        x = tl.load(x_ptr + at, eviction_policy="evict_first").to(tl.float32) - peak
        tl.store(out_ptr + at, x - shift if LOG else tl.exp2(x * LOG2E) * scale)
    for start in range(whole, cols, BLOCK):
        at = begin + placed(start + lane, whole, head, ALIGNED)
        x = tl.load(x_ptr + at, mask=start + lane < cols, other=0.0).to(tl.float32) - peak
        tl.store(out_ptr + at, x - shift if LOG else tl.exp2(x * LOG2E) * scale, mask=start + lane < cols)


def tile(cols: int, size: int) -> tuple[int, int, int]:
    """Rows of a program, their columns as a power of two, and warps, for elements of `size` bytes.

    A thread asks for `lane_bytes` of the input before it waits for the first of them. Short rows share a
    program, so that it has four warps all the same.
    """
    block = triton.next_power_of_2(cols)
    warp = 32 * PARAMETERS["lane_bytes"]
    together = max(1, 4 * warp // (block * size))
    return together, block, min(max(together * block * size // warp, 1), 16)


def softmax(x: torch.Tensor, log: bool = False) -> torch.Tensor:
    """Softmax of `x` over its last dimension, or its logarithm; same shape and dtype."""
    x = x.contiguous()
    cols, size = x.shape[-1], x.element_size()
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    rows = x.numel() // cols
    if cols <= PARAMETERS["max_block"]:
        together, block, warps = tile(cols, size)
        softmax_row[(triton.cdiv(rows, together),)](
            x, out, rows, cols, LOG=log, ROWS=together, BLOCK=block, num_warps=warps
        )
    else:
        _, block, warps = tile(PARAMETERS["block"], size)
        vec = 16 // size
        softmax_long[(rows,)](
            x, out, cols, LOG=log, ALIGNED=cols % vec == 0, BLOCK=block, VEC=vec, num_warps=warps
        )
    return out
