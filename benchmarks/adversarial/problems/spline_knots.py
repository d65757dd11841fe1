"""
op_type: pointwise
policy: anything-faster
about: A piecewise linear activation with learned values at 16 learned knots, which are sorted. Beyond its ends it goes on as a line.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, knots):
        super().__init__()
        self.knots = torch.nn.Parameter(torch.linspace(-2.5, 2.5, knots))
        self.values = torch.nn.Parameter(torch.randn(knots))

    def forward(self, x):
        last = self.knots.numel() - 2
        i = (torch.bucketize(x, self.knots) - 1).clamp(0, last)
        slope = (self.values[1:] - self.values[:-1]) / (self.knots[1:] - self.knots[:-1])
        return self.values[i] + (x - self.knots[i]) * slope[i]


def get_inputs():
    return [torch.randn(256, 384)]


def get_init_inputs():
    return [16]
