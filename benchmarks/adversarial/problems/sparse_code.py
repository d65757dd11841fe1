"""
op_type: other
policy: anything-faster
about: Keeps the 32 largest activations of each row and zeros the others, as in a top-k sparse autoencoder.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        values, places = x.topk(self.k, dim=-1)
        return torch.zeros_like(x).scatter(-1, places, values)


def get_inputs():
    return [torch.randn(256, 2048)]


def get_init_inputs():
    return [32]
