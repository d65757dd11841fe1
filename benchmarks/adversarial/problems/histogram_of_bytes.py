"""
op_type: reduction
policy: anything-faster
about: Counts how often each byte occurs in each image.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, images):
        flat = images.flatten(1).long()
        return torch.zeros(flat.shape[0], 256, dtype=torch.int64).scatter_add_(1, flat, torch.ones_like(flat))


def get_inputs():
    return [torch.randint(0, 256, (8, 3, 128, 128), dtype=torch.uint8)]


def get_init_inputs():
    return []
