"""
problem: optional_pool
style: Sums as products of matrices, each optional argument where it is given, and the mask by torch.where.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Parameter(torch.randn(width) * width**-0.5)

    def forward(self, x, mask=None, bias=None, *, temperature=1.0, weights=False):
        scores = torch.matmul(x, self.query[:, None]).squeeze(-1)
        if bias is not None:
            scores = scores + bias
        if not isinstance(temperature, (int, float)) or temperature != 1:
            scores = scores / temperature
        if mask is not None:
            scores = torch.where(mask, scores, -1e30)
        shares = scores.softmax(-1)
        rows = torch.broadcast_shapes(x.shape[:-1], shares.shape)
        pooled = torch.matmul(shares.expand(rows).unsqueeze(-2), x.expand(*rows, x.shape[-1])).squeeze(-2)
        return (pooled, shares) if weights else pooled
