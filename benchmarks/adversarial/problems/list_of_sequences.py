"""
op_type: gemm_epilogue
policy: anything-faster
about: A feed-forward layer for a list of sequences of different lengths, one after the other.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.up = torch.nn.Linear(inner, outer)
        self.norm = torch.nn.LayerNorm(outer)

    def forward(self, sequences):
        return [self.norm(torch.relu(self.up(s))) for s in sequences]


def get_inputs():
    return [[torch.randn(n, 128) for n in (5, 61, 17, 128, 1, 33, 90, 8, 44, 2, 19, 73)]]


def get_init_inputs():
    return [128, 192]
