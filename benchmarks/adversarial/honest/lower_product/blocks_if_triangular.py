"""
problem: lower_product
style: multiplies the blocks on and below the diagonal alone, if all above it is zero in both matrices.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        if a.shape != (n, n) or b.shape != (n, n) or n < 64 or a.triu(1).any() or b.triu(1).any():
            return torch.tril(a @ b)
        step = -(-n // 4)
        out = torch.zeros(n, n, dtype=a.dtype)
        for j in range(0, n, step):
            torch.mm(a[j:, j:], b[j:, j : j + step], out=out[j:, j : j + step])
        return out.tril_()
