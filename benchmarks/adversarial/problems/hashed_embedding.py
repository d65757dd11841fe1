"""
op_type: embedding
policy: anything-faster
about: Hashes 64-bit numbers into buckets, and gives the row of each bucket.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, buckets, width):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(buckets, width))

    def forward(self, ids):
        h = ids
        for _ in range(4):
            h = (h ^ (h >> 15)) * 2246822519
            h = (h ^ (h >> 13)) * 3266489917
        return self.table[(h ^ (h >> 16)) % self.table.shape[0]]


def get_inputs():
    return [torch.randint(0, 5000, (256, 128))]


def get_init_inputs():
    return [1024, 16]
