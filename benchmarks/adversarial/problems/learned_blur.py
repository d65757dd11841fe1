"""
op_type: convolution
policy: anything-faster
about: One learned filter of 7 by 7 for all planes of a batch, which begins as a Gaussian blur. Beyond the border are zeros.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        line = torch.exp(-0.5 * (torch.arange(7.0) - 3) ** 2 / width**2)
        kernel = line[:, None] * line[None]
        self.kernel = torch.nn.Parameter(kernel / kernel.sum())

    def forward(self, x):
        n, c, h, w = x.shape
        return F.conv2d(x.reshape(n * c, 1, h, w), self.kernel[None, None], padding=3).view(n, c, h, w)


def get_inputs():
    return [torch.randn(4, 3, 128, 128)]


def get_init_inputs():
    return [2.0]
