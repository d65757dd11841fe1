"""
problem: wide_linear
policy: anything-faster
style: The long sum in eight parts, which are added afterwards.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        weight, bias = self.linear.weight, self.linear.bias
        parts = zip(x.chunk(8, dim=1), weight.chunk(8, dim=1))
        return sum(a @ b.t() for a, b in parts) + bias
