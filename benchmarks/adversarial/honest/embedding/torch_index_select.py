"""
problem: embedding
policy: anything-faster
style: index_select
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width)

    def forward(self, ids):
        return self.table.weight.index_select(0, ids)
