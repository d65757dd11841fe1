"""
problem: both_positive
policy: anything-faster
style: minimum above zero; NaN is not above zero either way
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.minimum(a, b) > 0
