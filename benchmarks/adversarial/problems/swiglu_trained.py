"""
op_type: pointwise
policy: anything-faster
about: SwiGLU of two tensors, its gradients, and other types.
"""

import torch
import torch.nn.functional as F

differentiable = True
dtypes = ("bfloat16", "float64")


class Model(torch.nn.Module):
    def forward(self, gate, value):
        return F.silu(gate) * value


def get_inputs():
    return [torch.randn(256, 768), torch.randn(256, 768)]


def get_init_inputs():
    return []
