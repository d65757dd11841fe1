"""
op_type: other
policy: anything-faster
about: Mean pooling with ceil_mode. The last windows may reach past the image, and are means of what lies within. In draws all of them fit.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AvgPool2d(3, stride=2, ceil_mode=True)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(8, 64, 65, 65)]


def get_init_inputs():
    return []
