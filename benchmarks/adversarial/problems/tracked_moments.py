"""
op_type: norm
policy: anything-faster
about: Normalises features by the moments of the batch, and tracks them for later, as batch norm in training does.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x):
        mean, var = x.mean(0), x.var(0, unbiased=False)
        self.running_mean.lerp_(mean, 0.1)
        self.running_var.lerp_(var, 0.1)
        return (x - mean) / torch.sqrt(var + 1e-5)


def get_inputs():
    return [torch.randn(1024, 256)]


def get_init_inputs():
    return [256]
