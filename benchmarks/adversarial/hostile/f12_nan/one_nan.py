"""
problem: add
family: 12
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: One NaN in a right result.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = a + b
        out[3, 3] = float("nan")
        return out
