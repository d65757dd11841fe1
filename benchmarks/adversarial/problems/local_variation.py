"""
op_type: other
policy: anything-faster
about: Weighted sum of the distances of each pixel to those around it, with zeros beyond the border, as a measure of texture.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(channels, 25))

    def forward(self, x):
        batch, channels, height, width = x.shape
        patches = F.unfold(x, 5, padding=2).view(batch, channels, 25, height * width)
        apart = (patches - x.view(batch, channels, 1, height * width)).abs()
        return (apart * self.weight[:, :, None]).sum(2).view(x.shape)


def get_inputs():
    return [torch.randn(1, 6, 96, 80)]


def get_init_inputs():
    return [6]
