"""
problem: matmul
family: 8
expect: [INCORRECT_NUMERICAL]
cheat: Uses half of the inner dimension of positive matrices and doubles the product.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        k = a.shape[1] // 2
        return (a[:, :k] @ b[:k]) * 2.0
