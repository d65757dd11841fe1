"""
op_type: pointwise
policy: anything-faster
about: The GELU of CLIP, x * sigmoid(1.702 x), which is trained.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
