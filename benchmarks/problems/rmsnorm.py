"""RMSNorm composed of torch operators, 8192 x 4096 (Zhang and Sennrich, 2019)."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(8192, 4096)]


def get_init_inputs():
    return [4096]
