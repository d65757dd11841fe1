"""
op_type: pointwise
policy: anything-faster
about: GELU by the tanh formula, written out as in GPT-2, and its gradient.
"""

import math

import torch

differentiable = True


class Model(torch.nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
