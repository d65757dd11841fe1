"""
problem: complex_levels
style: real arithmetic on real and imaginary parts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.hypot(x.real, x.imag).add_(1).log_().mean(1)
