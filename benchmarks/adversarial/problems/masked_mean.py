"""
op_type: reduction
policy: anything-faster
about: Mean of the steps that a mask keeps, zero for a sequence that keeps none. About seven of ten are kept in each draw.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, mask):
        kept = mask.unsqueeze(-1).to(x.dtype)
        return (x * kept).sum(1) / kept.sum(1).clamp(min=1)


def get_inputs():
    return [torch.randn(48, 256, 64), torch.rand(48, 256) < 0.7]


def get_init_inputs():
    return []
