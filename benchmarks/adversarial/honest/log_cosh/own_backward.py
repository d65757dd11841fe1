"""
problem: log_cosh
style: An autograd.Function that keeps the errors alone; the gradient is their hyperbolic tangent. Works in place on its own tensors.
"""

import math

import torch
import torch.nn.functional as F


class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, guess, target):
        error = guess - target
        ctx.save_for_backward(error)
        ctx.shapes = guess.shape, target.shape
        size = error.abs()
        return F.softplus(size * -2).add_(size).sub_(math.log(2)).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (error,) = ctx.saved_tensors
        slope = error.tanh().mul_(grad / error.numel())
        first, second = ctx.shapes
        return slope.sum_to_size(first), slope.neg().sum_to_size(second)


class ModelNew(torch.nn.Module):
    def forward(self, guess, target):
        return LogCosh.apply(guess, target)
