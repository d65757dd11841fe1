"""
op_type: loss
policy: anything-faster
about: Binary cross entropy of probabilities with soft labels, the mean of each row. torch bounds the logarithms at -100.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, probabilities, labels):
        return F.binary_cross_entropy(probabilities, labels, reduction="none").mean(-1)


def get_inputs():
    return [torch.rand(1024, 128), torch.rand(1024, 128)]


def get_init_inputs():
    return []
