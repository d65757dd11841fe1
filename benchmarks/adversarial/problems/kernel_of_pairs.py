"""
op_type: reduction
policy: anything-faster
about: The Gaussian kernel of all pairs of two sets, which often are one and the same tensor, given twice.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x, y):
        return torch.exp(-self.rate * (x[:, None] - y[None]).square().sum(-1))


def get_inputs():
    x = torch.randn(384, 24)
    return [x, x]


def get_init_inputs():
    return [0.05]
