"""
op_type: gemm
policy: anything-faster
about: Complex weights of beams applied to signals of sensors. Each draw has real signals in a complex tensor.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, sensors, beams):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(sensors, beams, dtype=torch.complex64) / sensors**0.5)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(256, 512).to(torch.complex64)]


def get_init_inputs():
    return [512, 512]
