"""
op_type: stencil
policy: anything-faster
about: Twenty steps of the heat equation on plates whose edges keep their temperature.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, plates, rate):
        u = plates.clone()
        for _ in range(20):
            inner = u[:, 1:-1, 1:-1]
            near = u[:, :-2, 1:-1] + u[:, 2:, 1:-1] + u[:, 1:-1, :-2] + u[:, 1:-1, 2:]
            u[:, 1:-1, 1:-1] = inner + rate * (near - 4 * inner)
        return u


def get_inputs():
    return [torch.randn(4, 192, 192), torch.rand(()) / 4]


def get_init_inputs():
    return []
