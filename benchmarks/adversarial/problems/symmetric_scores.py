"""
op_type: softmax
policy: anything-faster
about: Attention weights of a graph from its symmetric matrix of scores, with the softmax written out.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores):
        e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        return e / e.sum(dim=-1, keepdim=True)


def get_inputs():
    a = torch.randn(1024, 1024)
    return [(a + a.T) * 0.7]


def get_init_inputs():
    return []
