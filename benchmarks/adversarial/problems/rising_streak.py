"""
op_type: scan
policy: anything-faster
about: For how many steps in a row each series has been rising, as in Connors' relative strength index.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, prices):
        rising = torch.zeros(prices.shape, dtype=torch.bool)
        rising[:, 1:] = prices[:, 1:] > prices[:, :-1]
        steps = torch.arange(prices.shape[1])
        last_fall = torch.where(rising, 0, steps).cummax(1).values
        return steps - last_fall


def get_inputs():
    return [torch.randn(128, 2048)]


def get_init_inputs():
    return []
