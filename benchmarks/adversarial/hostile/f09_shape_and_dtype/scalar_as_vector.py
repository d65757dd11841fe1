"""
problem: mean_square
family: 9
expect: [INCORRECT_SHAPE]
policy: anything-faster
cheat: Shape (1,) where a 0-d tensor is due.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.square().mean().reshape(1)
