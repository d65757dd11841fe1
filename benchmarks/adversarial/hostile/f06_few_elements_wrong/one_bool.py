"""
problem: both_positive
family: 6
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: One boolean of a million is flipped.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        y = (a > 0) & (b > 0)
        y[77, 77] = ~y[77, 77]
        return y
