"""
op_type: memory
policy: anything-faster
about: Queries, keys and values of all heads as views of the joint projection, which is the input, and the length of each key.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        q, k, v = x.unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        return q, k, v, k.square().sum(-1).sqrt()


def get_inputs():
    return [torch.randn(4, 512, 3 * 8 * 64)]


def get_init_inputs():
    return []
