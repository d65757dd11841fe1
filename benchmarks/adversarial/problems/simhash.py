"""
op_type: other
policy: anything-faster
about: Hashes of vectors for nearest neighbours, made of the sides of 64 random planes on which a vector lies, as the bits of an integer.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.planes = torch.nn.Parameter(torch.randn(inner, 64))

    def forward(self, x):
        sides = (x @ self.planes >= 0).long()
        return (sides << torch.arange(64)).sum(-1)


def get_inputs():
    return [torch.randn(4096, 64)]


def get_init_inputs():
    return [64]
