"""
op_type: pointwise
policy: anything-faster
about: Keeps a running mean of the energy of each column, on which its answer does not depend.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("energy", torch.ones(512))

    def forward(self, x):
        self.energy.lerp_(x.square().mean(0), 0.1)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(2048, 512)]


def get_init_inputs():
    return []
