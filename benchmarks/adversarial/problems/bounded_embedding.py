"""
op_type: embedding
policy: anything-faster
about: torch's embedding with `max_norm`. Each call shortens the rows that it gives, in the table too, as torch documents.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width, max_norm=1.0)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 4096, (2048,))]


def get_init_inputs():
    return [4096, 64]
