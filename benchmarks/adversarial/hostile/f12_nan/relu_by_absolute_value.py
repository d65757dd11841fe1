"""
problem: relu
family: 12
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: (x + |x|) / 2 is NaN for minus infinity, for which ReLU is zero.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.abs().add_(x).mul_(0.5)
