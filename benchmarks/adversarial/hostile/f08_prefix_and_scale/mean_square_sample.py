"""
problem: mean_square
family: 8
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Averages a quarter of the rows.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x[: x.shape[0] // 4].square().mean()
