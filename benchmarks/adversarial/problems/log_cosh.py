"""
op_type: loss
policy: anything-faster
about: The mean logarithm of the hyperbolic cosine of errors, and its gradients.
"""

import math

import torch
import torch.nn.functional as F

differentiable = True
dtypes = ("float64",)


class Model(torch.nn.Module):
    def forward(self, guess, target):
        size = (guess - target).abs()
        return (size + F.softplus(-2 * size) - math.log(2)).mean()


def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]


def get_init_inputs():
    return []
