"""
op_type: other
policy: anything-faster
about: The places of the eight best scores among those that are allowed.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, allowed):
        return scores.masked_fill(~allowed, float("-inf")).topk(8, dim=1).indices


def get_inputs():
    return [torch.randn(512, 384), torch.rand(512, 384) < 0.7]


def get_init_inputs():
    return []
