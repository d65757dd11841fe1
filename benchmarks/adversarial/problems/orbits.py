"""
op_type: pointwise
policy: anything-faster
about: Positions on orbits of half-axis one, by twenty Newton steps on Kepler's equation.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, mean, eccentricity):
        e = eccentricity
        x = mean + e * torch.sin(mean)
        for _ in range(20):
            x = x - (x - e * torch.sin(x) - mean) / (1 - e * torch.cos(x))
        return torch.cos(x) - e, torch.sqrt(1 - e * e) * torch.sin(x)


def get_inputs():
    return [torch.rand(32768) * 6.2831853, torch.rand(32768) * 0.4]


def get_init_inputs():
    return []
