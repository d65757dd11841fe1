"""
op_type: sort
policy: anything-faster
about: The tokens of each sequence in the order of their lengths, the longest first.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, tokens):
        return torch.linalg.vector_norm(tokens, dim=-1).argsort(dim=-1, descending=True)


def get_inputs():
    return [torch.randn(4, 16384, 32)]


def get_init_inputs():
    return []
