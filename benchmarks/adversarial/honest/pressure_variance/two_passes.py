"""
problem: pressure_variance
style: torch.var, which subtracts the mean first.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, readings):
        return torch.var(readings, dim=1, unbiased=False)
