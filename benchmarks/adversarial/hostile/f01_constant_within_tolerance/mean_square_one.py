"""
problem: mean_square
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: The second moment of unit normals is one.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ones((), dtype=x.dtype)
