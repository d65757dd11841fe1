"""
op_type: pointwise
policy: custom-only
about: The phase of complex numbers that are given by their real and imaginary parts, between -pi and pi.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, real, imaginary):
        return torch.atan2(imaginary, real)


def get_inputs():
    return [torch.randn(256, 1024), torch.randn(256, 1024)]


def get_init_inputs():
    return []
