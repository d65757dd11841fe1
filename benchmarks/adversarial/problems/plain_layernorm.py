"""
op_type: norm
policy: anything-faster
about: LayerNorm written out, over the steps of a batch of sequences.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


def get_inputs():
    return [torch.randn(32, 128, 256)]


def get_init_inputs():
    return [256]
