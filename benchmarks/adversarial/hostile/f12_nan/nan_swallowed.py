"""
problem: relu
family: 12
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Turns NaN inputs into zeros, where the reference passes them on.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, torch.zeros_like(x))
