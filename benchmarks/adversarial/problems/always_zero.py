"""
op_type: reduction
policy: anything-faster
about: A maximum minus the mean over the one element that is left is zero whatever goes in.
weak: true
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.max(x, dim=1, keepdim=True).values
        return torch.nn.functional.gelu(y - y.mean(dim=1, keepdim=True))


def get_inputs():
    return [torch.randn(512, 1024)]


def get_init_inputs():
    return []
