"""
problem: block_cosines
style: Both sides as one product of 64 by 64, a Kronecker product that is made when the file is imported, in double and rounded once.
"""

import math

import torch

_ANGLES = torch.arange(8, dtype=torch.float64)[:, None] * (2 * torch.arange(8) + 1) * (math.pi / 16)
_SIDE = _ANGLES.cos() * torch.tensor([0.125**0.5] + [0.5] * 7, dtype=torch.float64)[:, None]
_BOTH = torch.kron(_SIDE, _SIDE).t().float().contiguous()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n, height, width = x.shape
        blocks = x.reshape(n, height // 8, 8, width // 8, 8).transpose(2, 3).reshape(-1, 64)
        return (blocks @ _BOTH).view(n, height // 8, width // 8, 8, 8)
