"""
op_type: pointwise
policy: custom-only
about: Exact (erf) GELU.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
