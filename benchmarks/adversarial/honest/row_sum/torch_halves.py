"""
problem: row_sum
policy: anything-faster
style: two halves, reassociated
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        k = x.shape[1] // 2
        return x[:, :k].sum(dim=1) + x[:, k:].sum(dim=1)
