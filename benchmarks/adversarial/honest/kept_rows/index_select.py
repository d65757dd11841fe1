"""
problem: kept_rows
style: Finds the places once, then selects them.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, scores):
        places = torch.nonzero(scores > 0).flatten()
        return x.index_select(0, places), places
