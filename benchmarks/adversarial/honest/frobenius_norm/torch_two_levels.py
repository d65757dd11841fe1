"""
problem: frobenius_norm
policy: anything-faster
style: partial sums in scratch, then one root
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        partial = (x * x).sum(dim=-1)
        return x / partial.sum().sqrt()
