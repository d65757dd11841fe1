"""
problem: bounded_embedding
style: Shortens the rows that a call takes, writes them back to the table, and gives them.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = torch.nn.Embedding(rows, width, max_norm=1.0)

    @torch.no_grad()
    def forward(self, ids):
        weight = self.table.weight
        rows = weight.index_select(0, ids)
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        rows = torch.where(lengths > 1.0, rows / (lengths + 1e-7), rows)
        weight.index_copy_(0, ids, rows)
        return rows
