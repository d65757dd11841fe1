"""
op_type: indexing
policy: anything-faster
about: The rows of a table of learned positions that a chunk of a sequence gets, from its first position on.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, positions, width, chunk):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(positions, width))
        self.chunk = chunk

    def forward(self, start):
        return torch.nn.functional.embedding(start + torch.arange(self.chunk), self.table)


def get_inputs():
    return [torch.randint(0, 1025, (1,))]


def get_init_inputs():
    return [3072, 1024, 2048]
