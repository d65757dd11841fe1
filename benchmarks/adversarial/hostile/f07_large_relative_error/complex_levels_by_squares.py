"""
problem: complex_levels
family: 7
expect: [INCORRECT_NUMERICAL]
cheat: Absolute values of complex numbers by their squares, which overflow above 1e19.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        parts = torch.view_as_real(x)
        return (parts * parts).sum(-1).sqrt_().log1p_().mean(1)
