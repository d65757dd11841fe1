"""
op_type: other
policy: anything-faster
about: Histogram equalisation of gray images. An image of one gray becomes black.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, images):
        flat = images.flatten(1).long()
        counts = torch.zeros(len(flat), 256, dtype=torch.int64).scatter_add_(1, flat, torch.ones_like(flat))
        below = counts.cumsum(1)
        first = below.gather(1, flat.amin(1, keepdim=True))
        room = (flat.shape[1] - first).clamp(min=1)
        levels = ((below - first).clamp(min=0) * 255) // room
        return levels.gather(1, flat).to(torch.uint8).view(images.shape)


def get_inputs():
    return [torch.randint(0, 256, (16, 128, 128), dtype=torch.uint8)]


def get_init_inputs():
    return []
