"""
op_type: memory
policy: anything-faster
about: Squares of 4 by 4 bytes become channels. Sizes of zero and those that four does not divide are refused.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        if not x.numel():
            raise ValueError("an image without pixels")
        return F.pixel_unshuffle(x, 4)


def get_inputs():
    return [torch.randint(0, 256, (8, 3, 224, 224), dtype=torch.uint8)]


def get_init_inputs():
    return []
