"""
problem: cumsum_float64
style: sums of blocks first
"""

import torch

BLOCK = 512


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] % BLOCK:
            return torch.cumsum(x, dim=1)
        within = torch.cumsum(x.reshape(x.shape[0], -1, BLOCK), dim=2)
        # Not the inclusive sums less their own block: a NaN in it would reach the values before it.
        before = torch.nn.functional.pad(torch.cumsum(within[:, :-1, -1], dim=1), (1, 0))
        return within.add_(before.unsqueeze(2)).reshape(x.shape)
