"""
problem: sampled_products
style: Parts of 4096 entries, whose rows stay in the cache, as batches of products of one row and one column.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b, starts, columns):
        rows = torch.repeat_interleave(torch.arange(len(a)), starts.diff())
        if len(rows) != len(columns):
            raise ValueError("starts and columns do not fit")
        parts = [
            torch.bmm(a[i].unsqueeze(1), b[j].unsqueeze(2)).flatten()
            for i, j in zip(rows.split(4096), columns.split(4096))
        ]
        return torch.cat(parts)
