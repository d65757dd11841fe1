"""
op_type: pointwise
policy: anything-faster
about: The result is a transposed view, so its strides are not those of a contiguous tensor.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * 2.0 + 1.0).t()


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
