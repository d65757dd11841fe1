"""
op_type: pointwise
policy: custom-only
about: GELU by the tanh formula, written out as in GPT-2.
"""

import math

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
