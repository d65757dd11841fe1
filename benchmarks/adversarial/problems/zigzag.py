"""
op_type: scan
policy: anything-faster
about: Decodes rows of 64-bit integers that are stored as zigzag codes of differences.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, codes):
        differences = (codes >> 1) ^ -(codes & 1)
        return differences.cumsum(1)


def get_inputs():
    return [torch.randint(0, 1 << 40, (256, 1024))]


def get_init_inputs():
    return []
