"""
problem: group_norm
style: mean and variance are sums times a rounded reciprocal
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, channels)

    def forward(self, x):
        norm = self.norm
        flat = x.reshape(x.shape[0], norm.num_groups, -1)
        share = torch.tensor(1.0 / flat.shape[2])
        centred = flat - flat.sum(2, keepdim=True) * share
        variance = (centred * centred).sum(2, keepdim=True) * share
        out = (centred * torch.rsqrt(variance + norm.eps)).view_as(x)
        return out * norm.weight[:, None, None] + norm.bias[:, None, None]
