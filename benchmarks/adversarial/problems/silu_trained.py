"""
op_type: pointwise
policy: anything-faster
about: SiLU that is trained and used in other types too.
"""

import torch

differentiable = True
dtypes = ("bfloat16", "float64")


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
