"""
problem: cumsum
family: 10
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Accumulates in bfloat16.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x.bfloat16(), dim=1).float()
