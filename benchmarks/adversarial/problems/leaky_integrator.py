"""
op_type: scan
policy: anything-faster
about: A leaky integrator with one rate for each channel. Rates are positive by softplus of a parameter that begins at -2.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.full((channels,), -2.0))

    def forward(self, x):
        decay = torch.exp(-F.softplus(self.rate))
        h, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = decay * h + (1 - decay) * x[:, t]
            out.append(h)
        return torch.stack(out, dim=1)


def get_inputs():
    return [torch.randn(16, 48, 256)]


def get_init_inputs():
    return [256]
