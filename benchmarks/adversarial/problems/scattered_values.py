"""
op_type: memory
policy: anything-faster
about: One value in each row at a given place; all other elements are zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, ids):
        return torch.zeros(ids.shape[0], 4096, dtype=x.dtype).scatter_(1, ids[:, None], x[:, None])


def get_inputs():
    return [torch.randn(1024), torch.randint(0, 4096, (1024,))]


def get_init_inputs():
    return []
