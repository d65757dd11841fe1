"""
op_type: linear_algebra
policy: anything-faster
about: The discrete cosine transform of blocks of 8 by 8 pixels, as in JPEG. Pixels are finite.
"""

import math

import torch

finite = True
ROWS = [[math.cos(math.pi * (2 * i + 1) * k / 16) * (0.5 if k else 0.125**0.5) for i in range(8)] for k in range(8)]


class Model(torch.nn.Module):
    def forward(self, x):
        n, height, width = x.shape
        matrix = torch.tensor(ROWS)
        blocks = x.reshape(n, height // 8, 8, width // 8, 8).transpose(2, 3)
        return matrix @ blocks @ matrix.t()


def get_inputs():
    return [torch.rand(6, 256, 256) * 255 - 128]


def get_init_inputs():
    return []
