"""
problem: response_norm
style: Two functions that torch.compile compiles, with dynamic shapes; the gain of a channel is one factor for its pixels.
"""

import torch
import torch.nn.functional as F


@torch.compile(dynamic=True)
def squares(x):
    return F.gelu(x).square().sum((1, 2))


@torch.compile(dynamic=True)
def finish(x, total, gamma, beta):
    lengths = total.sqrt()
    factor = 1 + gamma * (lengths / (lengths.mean(-1, keepdim=True) + 1e-6))
    return torch.addcmul(beta, F.gelu(x), factor[:, None, None])


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.randn(width))
        self.beta = torch.nn.Parameter(torch.randn(width))

    @torch.no_grad()
    def forward(self, x):
        if x.dim() != 4:
            raise ValueError("images with channels last are expected")
        return finish(x, squares(x), self.gamma, self.beta)
