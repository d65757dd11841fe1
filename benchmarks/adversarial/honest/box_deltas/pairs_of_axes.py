"""
problem: box_deltas
style: Both axes at once as pairs, and each half written to one new tensor.
"""

import math

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, height, width):
        super().__init__()
        self.size = torch.tensor([width, height])

    def forward(self, anchors, deltas):
        if anchors.shape[-1] != 4 or deltas.shape[-1] != 4 or anchors.dtype != deltas.dtype:
            raise ValueError("boxes of four numbers are expected")
        low, high = anchors[..., :2], anchors[..., 2:]
        extent = high - low
        middle = torch.addcmul(torch.add(low, extent, alpha=0.5), deltas[..., :2], extent)
        half = deltas[..., 2:].clamp(max=math.log(62.5)).exp_().mul_(extent).mul_(0.5)
        out = torch.empty((*middle.shape[:-1], 4), dtype=middle.dtype, device=middle.device)
        torch.sub(middle, half, out=out[..., :2])
        torch.add(middle, half, out=out[..., 2:])
        size = self.size.to(out.dtype)
        pairs = out.unflatten(-1, (2, 2))
        torch.minimum(pairs.clamp_(min=0), size, out=pairs)
        return out
