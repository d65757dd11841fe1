"""
problem: l2_norm
family: 12
expect: [INCORRECT_NUMERICAL]
cheat: Infinity everywhere; inf/inf in a relative error is NaN.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.full_like(x, float("inf"))
