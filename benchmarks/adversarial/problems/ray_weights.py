"""
op_type: scan
policy: anything-faster
about: Weights of the samples of a ray in volume rendering, which are their opacity (from 0 to 1) times what the samples before let through.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, alpha):
        through = torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha], 1)
        return alpha * torch.cumprod(through, 1)[:, :-1]


def get_inputs():
    return [torch.rand(4096, 128) * 0.1]


def get_init_inputs():
    return []
