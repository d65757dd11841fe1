"""
op_type: other
policy: anything-faster
about: Runs of equal numbers, that is their values, lengths and the run of each element.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.unique_consecutive(x, return_inverse=True, return_counts=True)


def get_inputs():
    return [torch.randint(0, 3, (150_000,)).repeat_interleave(torch.randint(0, 4, (150_000,)))[:200_000]]


def get_init_inputs():
    return []
