"""
op_type: norm
policy: custom-only
about: RMSNorm whose weight starts as ones, so that forgetting it goes unnoticed unless weights are varied.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return [1024, 1e-6]
