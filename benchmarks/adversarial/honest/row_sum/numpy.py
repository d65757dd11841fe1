"""
problem: row_sum
policy: anything-faster
style: numpy, where anything is allowed
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy().sum(axis=1))
