"""
op_type: other
policy: anything-faster
about: Binary cross-entropy of probabilities, whose logarithms torch bounds at -100; the mean of each row.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, p, target):
        return F.binary_cross_entropy(p, target, reduction="none").mean(1)


def get_inputs():
    return [torch.randn(256, 512).sigmoid(), (torch.rand(256, 512) < 0.5).float()]


def get_init_inputs():
    return []
