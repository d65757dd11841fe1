"""
problem: mean_square
policy: anything-faster
style: rows first, then the mean of rows
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.square().mean(dim=1).mean()
