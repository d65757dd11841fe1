"""
problem: softmax_rows
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: Returns 1/n, so that every row even sums to one.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.full_like(x, 1.0 / x.shape[-1])
