"""
op_type: pointwise
policy: anything-faster
about: Modulates signals by two waves whose numbers each call draws from a million.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, numbers):
        t = torch.arange(x.shape[-1], dtype=torch.float64)
        phases = t * numbers[:, None] * 1e-6, t.sqrt() * numbers[:, None] * 1e-3
        first, second = (torch.sin(phases[0]) * torch.cos(phases[1])).float()
        return x * (first + second)


def get_inputs():
    return [torch.randn(4, 131072), torch.randint(1, 1000000, (2,))]


def get_init_inputs():
    return []
