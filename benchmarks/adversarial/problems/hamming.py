"""
op_type: other
policy: anything-faster
about: Hamming distances between all pairs of codes of 256 bits, each in four 64-bit integers.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        different = a[:, None] ^ b[None]
        total = torch.zeros(different.shape[:2], dtype=torch.int64)
        for bit in range(64):
            total += ((different >> bit) & 1).sum(-1)
        return total


def get_inputs():
    low, high = -(1 << 62), 1 << 62
    return [torch.randint(low, high, (48, 4)) * 2 + 1, torch.randint(low, high, (64, 4)) * 2]


def get_init_inputs():
    return []
