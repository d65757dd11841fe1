"""
op_type: embedding
policy: anything-faster
about: Rows of a table by integers, zeros where an integer is negative, as padding is. No draw has padding.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(rows, width))

    def forward(self, ids):
        return F.embedding(ids.clamp(min=0), self.table) * (ids >= 0).unsqueeze(-1)


def get_inputs():
    return [torch.randint(0, 4096, (64, 128))]


def get_init_inputs():
    return [4096, 128]
