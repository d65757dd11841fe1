"""
problem: gelu
family: 7
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Results below 1e-3 in size become zero.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.nn.functional.gelu(x)
        return torch.where(y.abs() < 1e-3, torch.zeros_like(y), y)
