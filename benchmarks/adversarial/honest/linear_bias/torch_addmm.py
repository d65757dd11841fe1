"""
problem: linear_bias
policy: anything-faster
style: addmm
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())
