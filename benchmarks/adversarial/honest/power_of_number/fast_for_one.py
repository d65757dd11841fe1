"""
problem: power_of_number
style: fast for one exponent, general for others
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, exponent):
        return x.sqrt().mul_(x) if exponent == 1.5 else torch.pow(x, exponent)
