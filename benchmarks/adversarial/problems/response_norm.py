"""
op_type: norm
policy: anything-faster
about: Global response normalisation of ConvNeXt V2 after a GELU, with channels last.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.randn(width))
        self.beta = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        x = F.gelu(x)
        lengths = x.norm(dim=(1, 2), keepdim=True)
        relative = lengths / (lengths.mean(-1, keepdim=True) + 1e-6)
        return self.gamma * (x * relative) + self.beta + x


def get_inputs():
    return [torch.randn(4, 28, 28, 192)]


def get_init_inputs():
    return [192]
