"""
problem: first_row_halved
style: Two parts written into one tensor, nothing twice.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        torch.mul(x[:1], 0.5, out=y[:1])
        y[1:].copy_(x[1:])
        return y
