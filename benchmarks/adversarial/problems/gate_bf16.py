"""
op_type: pointwise
policy: anything-faster
about: SwiGLU of two bfloat16 tensors in single precision, rounded once at the end.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, gate, value):
        return (F.silu(gate.float()) * value.float()).to(torch.bfloat16)


def get_inputs():
    return [torch.randn(2048, 1024, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs():
    return []
