"""
op_type: other
policy: anything-faster
about: Gravitational accelerations of bodies, softened near each other.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, places, masses):
        apart = places - places[:, None]
        pull = masses * (apart.square().sum(-1) + 0.01).pow(-1.5)
        return (pull[..., None] * apart).sum(1)


def get_inputs():
    return [torch.randn(768, 3), torch.rand(768)]


def get_init_inputs():
    return []
