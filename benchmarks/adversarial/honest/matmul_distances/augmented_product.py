"""
problem: matmul_distances
style: The squares are two more columns of the product, as torch.cdist does it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        xs, ys = x.square().sum(-1, keepdim=True), y.square().sum(-1, keepdim=True)
        left = torch.cat([-2 * x, xs, torch.ones_like(xs)], dim=-1)
        right = torch.cat([y, torch.ones_like(ys), ys], dim=-1)
        return torch.mm(left, right.t()).clamp_(min=0).sqrt_()
