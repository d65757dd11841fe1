"""
op_type: other
policy: anything-faster
about: Sorted distinct ids, where each stands, and how often.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        return torch.unique(ids, return_inverse=True, return_counts=True)


def get_inputs():
    return [torch.randint(0, 300, (4096,))]


def get_init_inputs():
    return []
