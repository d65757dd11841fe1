"""
problem: gelu
family: 9
expect: [INCORRECT_DTYPE]
policy: anything-faster
cheat: Returns float64.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x.double())
