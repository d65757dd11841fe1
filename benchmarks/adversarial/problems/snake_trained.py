"""
op_type: pointwise
policy: anything-faster
about: The Snake activation of audio networks, x + sin(x) ** 2, and its gradient.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def forward(self, x):
        return x + torch.sin(x).square()


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
