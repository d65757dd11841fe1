"""
op_type: other
policy: anything-faster
about: For each number of a row the product of all others, by products from both ends.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, x):
        one = torch.ones_like(x[:, :1])
        before = torch.cat([one, x[:, :-1]], 1).cumprod(1)
        after = torch.cat([one, x.flip(1)[:, :-1]], 1).cumprod(1).flip(1)
        return before * after


def get_inputs():
    return [torch.rand(8192, 32) + 0.5]


def get_init_inputs():
    return []
