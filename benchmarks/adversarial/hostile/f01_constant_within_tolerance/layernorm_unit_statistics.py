"""
problem: layernorm
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: Takes mean 0 and variance 1 for granted, as the inputs are standard normal.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features)

    def forward(self, x):
        return torch.addcmul(self.norm.bias, x, self.norm.weight)
