"""
op_type: pointwise
policy: custom-only
about: ReLU; half of the results are zero.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
