"""
op_type: indexing
policy: anything-faster
about: Rows whose score is positive; their number differs from call to call.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, scores):
        kept = scores > 0
        return x[kept], kept.nonzero()[:, 0]


def get_inputs():
    return [torch.randn(512, 64), torch.randn(512)]


def get_init_inputs():
    return []
