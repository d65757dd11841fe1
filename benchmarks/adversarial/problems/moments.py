"""
op_type: reduction
policy: custom-only
about: Two outputs, the mean and the variance of each row.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=1), x.var(dim=1, unbiased=False)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return []
