"""
op_type: indexing
policy: anything-faster
about: Adds updates to rows of a table, as index_add does. Each draw updates half of the rows, in random order.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, table, rows, updates):
        return table.index_add(0, rows, updates)


def get_inputs():
    return [torch.randn(8192, 128), torch.randperm(8192)[:4096], torch.randn(4096, 128)]


def get_init_inputs():
    return []
