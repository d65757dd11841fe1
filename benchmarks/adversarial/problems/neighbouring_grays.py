"""
op_type: indexing
policy: anything-faster
about: Co-occurrence of 64 gray levels in pixels and their right neighbours, for the texture of each image.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, images):
        pairs = images[:, :, :-1].long() * 64 + images[:, :, 1:].long()
        flat = pairs.flatten(1)
        counts = torch.zeros(len(flat), 64 * 64, dtype=torch.int64)
        return counts.scatter_add_(1, flat, torch.ones_like(flat)).view(-1, 64, 64)


def get_inputs():
    return [torch.randint(0, 64, (4, 512, 512), dtype=torch.uint8)]


def get_init_inputs():
    return []
