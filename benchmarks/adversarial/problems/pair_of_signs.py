"""
op_type: pointwise
policy: anything-faster
about: Gated features and the same with the other sign, as a concatenated ReLU takes them.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, gate):
        y = x * gate
        return y, -y


def get_inputs():
    return [torch.randn(1024, 2048), torch.rand(1024, 2048)]


def get_init_inputs():
    return []
