"""
op_type: reduction
policy: anything-faster
about: How often each pair of levels occurs at the same pixel of two images, as for mutual information.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, fixed, moving):
        pairs = (fixed.long() >> 3) * 32 + (moving.long() >> 3)
        return torch.bincount(pairs.flatten(), minlength=1024).view(32, 32)


def get_inputs():
    return [torch.randint(0, 256, (640, 640), dtype=torch.uint8) for _ in range(2)]


def get_init_inputs():
    return []
