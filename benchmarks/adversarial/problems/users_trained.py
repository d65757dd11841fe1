"""
op_type: embedding
policy: anything-faster
about: The vectors of a batch of users, and the gradient of the table. Each draw has users that are all different.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def __init__(self, users, width):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(users, width) * 0.1)

    def forward(self, users):
        return self.table[users]


def get_inputs():
    return [torch.randperm(16384)[:8192]]


def get_init_inputs():
    return [16384, 128]
