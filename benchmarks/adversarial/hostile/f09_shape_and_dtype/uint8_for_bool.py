"""
problem: both_positive
family: 9
expect: [INCORRECT_DTYPE]
policy: anything-faster
cheat: uint8 in the place of bool.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return ((a > 0) & (b > 0)).to(torch.uint8)
