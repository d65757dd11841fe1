"""
problem: linear_bias
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: Drops the bias.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return x @ self.linear.weight.t()
