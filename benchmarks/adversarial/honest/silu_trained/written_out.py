"""
problem: silu_trained
style: x times its sigmoid, with a backward pass of its own, in every floating-point type.
"""

import torch


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return torch.nn.functional.silu(x)

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s * (1 + x * (1 - s)))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Silu.apply(x)
