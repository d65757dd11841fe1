"""
op_type: reduction
policy: custom-only
about: Sums of weights and numbers of elements in each of some bins.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, places, weights):
        sums = torch.zeros(self.bins, dtype=weights.dtype).index_add(0, places, weights)
        counts = torch.bincount(places, minlength=self.bins)
        return sums, counts


def get_inputs():
    return [torch.randint(0, 512, (1 << 18,)), torch.rand(1 << 18)]


def get_init_inputs():
    return [512]
