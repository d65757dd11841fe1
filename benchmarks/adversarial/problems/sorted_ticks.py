"""
op_type: sort
policy: anything-faster
about: Prices as whole numbers of ticks, in order. Prices are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def __init__(self, tick):
        super().__init__()
        self.tick = tick

    def forward(self, prices):
        return torch.sort(torch.floor(prices / self.tick).long(), dim=-1, stable=True).values


def get_inputs():
    return [torch.randn(16, 16384)]


def get_init_inputs():
    return [0.05]
