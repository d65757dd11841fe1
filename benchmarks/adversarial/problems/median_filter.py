"""
op_type: stencil
policy: anything-faster
about: A median filter of images with windows of three by three pixels, the border repeated.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, images):
        n, c, h, w = images.shape
        padded = F.pad(images, (1, 1, 1, 1), mode="replicate")
        windows = padded.unfold(2, 3, 1).unfold(3, 3, 1).reshape(n, c, h, w, 9)
        return windows.median(-1).values


def get_inputs():
    return [torch.rand(2, 3, 96, 96)]


def get_init_inputs():
    return []
