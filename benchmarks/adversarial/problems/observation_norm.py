"""
op_type: norm
policy: anything-faster
about: Normalises observations of an agent by moments that were measured before. Moments and epsilon are buffers.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("mean", torch.randn(features))
        self.register_buffer("var", torch.rand(features) + 0.5)
        self.register_buffer("epsilon", torch.tensor(1e-8))

    def forward(self, x):
        return ((x - self.mean) / torch.sqrt(self.var + self.epsilon)).clamp(-10.0, 10.0)


def get_inputs():
    return [torch.randn(1024, 64)]


def get_init_inputs():
    return [64]
