"""
op_type: gather
policy: anything-faster
about: Rows of a tensor by a product with one-hot rows, as written for accelerators, and its gradient. Each draw chooses different rows.
"""

import torch
import torch.nn.functional as F

differentiable = True


class Model(torch.nn.Module):
    def forward(self, x, rows):
        return F.one_hot(rows, x.shape[0]).to(x.dtype) @ x


def get_inputs():
    return [torch.randn(1024, 64), torch.randperm(1024)[:512]]


def get_init_inputs():
    return []
