"""
op_type: softmax
policy: anything-faster
about: Softmax of scores whose masked places are filled with -1e9, as in the first implementations of the transformer. A row that is masked everywhere is uniform.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)


def get_inputs():
    return [torch.randn(512, 384), torch.rand(512, 384) < 0.7]


def get_init_inputs():
    return []
