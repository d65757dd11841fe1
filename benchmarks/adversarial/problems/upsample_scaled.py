"""
op_type: other
policy: vendor-gemm-allowed
about: Images of twice the size by bilinear interpolation, then a scale and a shift for each channel. Neither is a product of matrices nor a convolution.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(channels))
        self.shift = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        y = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return y * self.scale[:, None, None] + self.shift[:, None, None]


def get_inputs():
    return [torch.randn(4, 32, 64, 64)]


def get_init_inputs():
    return [32]
