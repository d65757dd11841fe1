"""
problem: log_cosh
style: log1p(2 sinh(x / 2)^2) where errors are small, which loses no digits there as the reference's formula does.
"""

import math

import torch


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, guess, target):
        error = guess - target
        ctx.save_for_backward(error)
        ctx.shapes = guess.shape, target.shape
        size = error.abs()
        near = (size / 2).sinh_().square_().mul_(2).log1p_()
        far = (size * -2).exp_().log1p_().add_(size).sub_(math.log(2))
        return torch.where(size < 1, near, far).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (error,) = ctx.saved_tensors
        slope = error.tanh() * (grad / error.numel())
        first, second = ctx.shapes
        return slope.sum_to_size(first), (-slope).sum_to_size(second)


class ModelNew(torch.nn.Module):
    def forward(self, guess, target):
        return LogCosh.apply(guess, target)
