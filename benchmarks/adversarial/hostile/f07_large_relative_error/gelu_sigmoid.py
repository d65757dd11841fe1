"""
problem: gelu
family: 7
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: x * sigmoid(1.702 x), two digits right.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)
