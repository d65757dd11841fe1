"""
problem: square_product
style: One level of Strassen's algorithm (Winograd's form) in double precision. Odd sizes, and matrices with NaN or infinity, go the plain way.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.dim() != 2 or b.dim() != 2 or a.dtype != torch.float32:
            return torch.matmul(a, b)
        (m, k), n = a.shape, b.shape[1]
        if m % 2 or k % 2 or n % 2 or k != b.shape[0] or not (a.isfinite().all() and b.isfinite().all()):
            return torch.mm(a, b)
        m, k, n = m // 2, k // 2, n // 2
        x, y = a.double(), b.double()
        a11, a12, a21, a22 = x[:m, :k], x[:m, k:], x[m:, :k], x[m:, k:]
        b11, b12, b21, b22 = y[:k, :n], y[:k, n:], y[k:, :n], y[k:, n:]
        s1 = a21 + a22
        s2 = s1 - a11
        s3 = a11 - a21
        t1 = b12 - b11
        t2 = b22 - t1
        t3 = b22 - b12
        p1 = a11 @ b11
        u2 = torch.addmm(p1, s2, t2)
        u3 = torch.addmm(u2, s3, t3)
        p5 = s1 @ t1
        out = torch.empty(2 * m, 2 * n, dtype=a.dtype)
        out[:m, :n] = torch.addmm(p1, a12, b21)
        out[:m, n:] = torch.addmm(u2 + p5, a12 - s2, b22)
        out[m:, :n] = torch.addmm(u3, a22, b21 - t2)
        out[m:, n:] = u3 + p5
        return out
