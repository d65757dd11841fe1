"""
problem: frobenius_norm
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: Zeros where the results are near 1e-3.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
