"""
op_type: reduction
policy: anything-faster
about: The Adler-32 checksum of each row of bytes, as in zlib, in 64-bit integers.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        wide, n = x.long(), x.shape[1]
        low = (1 + wide.sum(1)) % 65521
        high = (n + (wide * torch.arange(n, 0, -1)).sum(1)) % 65521
        return high << 16 | low


def get_inputs():
    return [torch.randint(0, 256, (64, 20_000), dtype=torch.uint8)]


def get_init_inputs():
    return []
