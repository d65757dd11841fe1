"""
op_type: other
policy: anything-faster
about: Hashes 64-bit numbers into buckets by several multiplications and shifts.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        h = ids
        for _ in range(4):
            h = (h ^ (h >> 15)) * 2246822519
            h = (h ^ (h >> 13)) * 3266489917
        return (h ^ (h >> 16)) % 65536


def get_inputs():
    return [torch.randint(0, 5000, (1024, 1024))]


def get_init_inputs():
    return []
