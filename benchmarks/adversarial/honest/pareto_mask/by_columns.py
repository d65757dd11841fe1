"""
problem: pareto_mask
style: Column by column with logical operators in place on two square masks.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, costs):
        n = len(costs)
        least = torch.ones(n, n, dtype=torch.bool)
        cheaper = torch.zeros(n, n, dtype=torch.bool)
        for column in costs.t().contiguous():
            least &= column <= column[:, None]
            cheaper |= column < column[:, None]
        return least.logical_and_(cheaper).any(1).logical_not_()
