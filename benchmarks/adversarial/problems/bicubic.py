"""
op_type: interpolate
policy: anything-faster
about: Feature maps of a given size by bicubic interpolation, as for position embeddings of other image sizes. Features are finite.
"""

import torch
import torch.nn.functional as F

finite = True


class Model(torch.nn.Module):
    def forward(self, x, height=84, width=100):
        return F.interpolate(x, size=(height, width), mode="bicubic", align_corners=False)


def get_inputs():
    return [torch.randn(1, 96, 32, 32), 84, 100]


def get_init_inputs():
    return []
