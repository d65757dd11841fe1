"""
op_type: softmax
policy: anything-faster
about: Softmax of scaled scores in float16 under a mask, computed in single precision. Rows without a place that counts are NaN.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, mask):
        wide = scores.float() * 0.125
        return wide.masked_fill(~mask, -torch.inf).softmax(-1).half()


def get_inputs():
    return [(torch.randn(8, 256, 256) * 16).half(), torch.rand(256, 256) < 0.9]


def get_init_inputs():
    return []
