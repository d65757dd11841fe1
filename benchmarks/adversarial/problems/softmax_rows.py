"""
op_type: softmax
policy: custom-only
about: Softmax over long rows; every result is near 2e-4, so a loose absolute tolerance accepts zeros.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(256, 4096)]


def get_init_inputs():
    return []
