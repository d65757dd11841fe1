"""
op_type: pointwise
policy: anything-faster
weak: true
about: Modulates signals by a wave whose number, a Python integer, each call draws from a million.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, number):
        t = torch.arange(x.shape[-1], dtype=torch.float64)
        wave = torch.sin(t * number * 1e-6) * torch.cos(t.sqrt() * number * 1e-3)
        return x * wave.float()


def get_inputs():
    return [torch.randn(4, 131072), int(torch.randint(1, 1000000, ()))]


def get_init_inputs():
    return []
