"""
op_type: pointwise
policy: anything-faster
about: In float32 the result is the input; no test of outputs can tell a copy from the computation.
weak: true
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1e-9 * x


def get_inputs():
    return [torch.rand(512, 1024) + 0.5]


def get_init_inputs():
    return []
