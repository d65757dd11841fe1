"""
op_type: sort
policy: anything-faster
about: The mean of each coordinate over 15 clients without the three largest and the three smallest, as in robust federated learning.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, updates):
        return updates.sort(0).values[3:-3].mean(0)


def get_inputs():
    return [torch.randn(15, 20_000)]


def get_init_inputs():
    return []
