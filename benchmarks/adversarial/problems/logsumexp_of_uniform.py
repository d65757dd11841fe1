"""
op_type: reduction
policy: anything-faster
about: Inputs between 0 and 1; 64 times as large they do not let exp overflow.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=1)


def get_inputs():
    return [torch.rand(1024, 2048)]


def get_init_inputs():
    return []
