"""
op_type: reduction
policy: anything-faster
about: Means over 7 x 7 areas of images of any size, as before the classifier of a VGG. Areas overlap where the size is no multiple of 7; draws have 28 x 28.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AdaptiveAvgPool2d(7)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(16, 128, 28, 28)]


def get_init_inputs():
    return []
