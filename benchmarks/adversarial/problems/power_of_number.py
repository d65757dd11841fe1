"""
op_type: pointwise
policy: anything-faster
about: Its exponent is an argument, a Python number, and get_inputs() always gives the same one.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, exponent):
        return torch.pow(x, exponent)


def get_inputs():
    return [torch.rand(1024, 1024) + 0.1, 1.5]


def get_init_inputs():
    return []
