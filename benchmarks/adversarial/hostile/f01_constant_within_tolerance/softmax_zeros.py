"""
problem: softmax_rows
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: Returns zeros; every true value is far below a 1e-2 tolerance.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
