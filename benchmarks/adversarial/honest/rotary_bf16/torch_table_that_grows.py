"""
problem: rotary_bf16
style: Keeps cosines and sines of the positions below the largest one so far, and makes more of them if a larger one comes.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x, positions):
        half, last = x.shape[-1] // 2, int(positions.max())
        if int(positions.min()) < 0:
            raise ValueError("positions are at least 0")
        if self.table is None or last >= len(self.table[0]) or half != self.table[0].shape[1]:
            rates = 10000.0 ** (-torch.arange(half).float() / half)
            angles = torch.outer(torch.arange(last + 1).float(), rates)
            self.table = angles.cos(), angles.sin()
        cos, sin = self.table[0][positions], self.table[1][positions]
        first, second = x.float().chunk(2, -1)
        out = torch.empty_like(x)
        torch.sub(first * cos, second * sin, out=out[..., :half])
        torch.add(second * cos, first * sin, out=out[..., half:])
        return out
