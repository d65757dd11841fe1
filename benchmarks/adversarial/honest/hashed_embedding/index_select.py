"""
problem: hashed_embedding
style: fewer temporary tensors, a mask for a power of two, and index_select
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, buckets, width):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(buckets, width))

    def forward(self, ids):
        h = ids.flatten()
        for _ in range(4):
            h = (h ^ (h >> 15)).mul_(2246822519)
            h = (h ^ (h >> 13)).mul_(3266489917)
        h = (h ^ (h >> 16)).bitwise_and_(self.table.shape[0] - 1)
        return self.table.index_select(0, h).view(*ids.shape, -1)
