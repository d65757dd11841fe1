"""
problem: scaled_transpose
style: a transposed view, as the reference returns
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.addcmul(torch.ones(()), x, torch.full((), 2.0)).t()
