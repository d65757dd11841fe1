"""
op_type: pointwise
policy: anything-faster
about: The mean of several checkpoints of a weight, or of an ensemble's answers, which come as a list.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, members):
        return sum(members) / len(members)


def get_inputs():
    return [[torch.randn(1024, 512) for _ in range(4)]]


def get_init_inputs():
    return []
