"""
op_type: pointwise
policy: anything-faster
about: Rows rounded to 8 bits and back, as quantisation-aware training does.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return torch.round(x / scale) * scale


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
