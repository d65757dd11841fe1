"""
problem: mean_square
family: 12
expect: [INCORRECT_NUMERICAL]
cheat: A NaN scalar.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(float("nan"))
