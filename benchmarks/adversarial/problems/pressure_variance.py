"""
op_type: reduction
policy: anything-faster
about: The variance of each barometer's readings, in Pascal, as the mean of squares less the square of the mean.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, readings):
        return readings.square().mean(1) - readings.mean(1).square()


def get_inputs():
    return [101325.0 + 50.0 * torch.randn(1024, 512)]


def get_init_inputs():
    return []
