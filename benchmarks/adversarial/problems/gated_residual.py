"""
op_type: pointwise
policy: anything-faster
about: A gated residual branch, in some tens of microseconds.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, gate, branch):
        return x + torch.sigmoid(gate) * torch.tanh(branch)


def get_inputs():
    return [torch.randn(64, 256), torch.randn(64, 256), torch.randn(64, 256)]


def get_init_inputs():
    return []
