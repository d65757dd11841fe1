"""
problem: row_sum
policy: anything-faster
style: A torch.autograd.Function around a matrix product with ones.
"""

import torch


class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.columns = x.shape[1]
        return torch.mv(x, torch.ones(x.shape[1], dtype=x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, None].expand(-1, ctx.columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return RowSum.apply(x)
