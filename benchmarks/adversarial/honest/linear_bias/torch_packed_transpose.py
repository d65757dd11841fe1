"""
problem: linear_bias
policy: anything-faster
style: the weight is transposed once, at first use, and again when it was replaced
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)
        self.packed = None
        self.packed_of = None

    def forward(self, x):
        weight = self.linear.weight
        key = (weight.data_ptr(), weight._version)
        if self.packed_of != key:
            self.packed, self.packed_of = weight.detach().t().contiguous(), key
        return torch.addmm(self.linear.bias, x, self.packed)
