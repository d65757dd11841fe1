"""
op_type: embedding
policy: custom-only
about: Rows of a table by integer index.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 1000, (2048,))]


def get_init_inputs():
    return [1000, 512]
