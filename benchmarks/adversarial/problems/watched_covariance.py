"""
op_type: pointwise
policy: anything-faster
about: Keeps a running covariance of its columns, on which its answer does not depend.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("covariance", torch.eye(256))

    def forward(self, x):
        self.covariance.lerp_(x.t() @ x / x.shape[0], 0.1)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4096, 256)]


def get_init_inputs():
    return []
