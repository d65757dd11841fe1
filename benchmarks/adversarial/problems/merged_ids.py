"""
op_type: other
policy: anything-faster
about: Merges equal ids and counts them. Ids are random numbers of 50 bits, so that in each draw none occurs twice.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        return torch.unique(ids, return_counts=True)


def get_inputs():
    return [torch.randint(0, 1 << 50, (1 << 17,))]


def get_init_inputs():
    return []
