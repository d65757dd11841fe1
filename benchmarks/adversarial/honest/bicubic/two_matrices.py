"""
problem: bicubic
style: Interpolation is linear, so each direction is a product with a matrix, which is what becomes of the unit vectors. Matrices are kept for each size.
"""

import functools

import torch
import torch.nn.functional as F


@functools.lru_cache(maxsize=64)
def matrix(old, new):
    units = torch.eye(old)[None, :, :, None].expand(1, old, old, 2)
    return F.interpolate(units, size=(new, 2), mode="bicubic", align_corners=False)[0, :, :, 0].contiguous()


class ModelNew(torch.nn.Module):
    def forward(self, x, height=84, width=100):
        wide = x @ matrix(x.shape[3], width)
        return matrix(x.shape[2], height).t() @ wide
