"""
op_type: memory
policy: anything-faster
about: A diagonal matrix for each row of probabilities; nearly all of 16 MiB is zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.diag_embed(x)


def get_inputs():
    return [torch.rand(64, 256)]


def get_init_inputs():
    return []
