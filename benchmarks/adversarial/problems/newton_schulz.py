"""
op_type: linear_algebra
policy: anything-faster
about: Five Newton-Schulz steps that make momentum matrices nearly orthogonal, as the optimizer Muon does.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, momentum):
        x = momentum / (momentum.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.mT
            b = -4.7750 * a + 2.0315 * a @ a
            x = 3.4445 * x + b @ x
        return x


def get_inputs():
    return [torch.randn(4, 96, 192)]


def get_init_inputs():
    return []
