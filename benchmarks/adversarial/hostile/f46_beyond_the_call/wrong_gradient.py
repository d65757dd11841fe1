"""
problem: silu_trained
family: 46
expect: [INCORRECT_NUMERICAL]
cheat: Forward is right; backward gives the gradient of a ReLU.
"""

import torch


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.silu(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Silu.apply(x)
