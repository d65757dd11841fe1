"""
problem: matmul
style: split-k: partial products added in another order
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        k = a.shape[1] // 2
        return torch.mm(a[:, :k], b[:k]) + torch.mm(a[:, k:], b[k:])
