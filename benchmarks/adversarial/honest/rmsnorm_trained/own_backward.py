"""
problem: rmsnorm_trained
style: An autograd function that keeps the input and one number for each row. Its formula has no third power, so it is right for large inputs too.
"""

import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True).add_(1e-6))
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        unit = x * scale
        inner = grad * weight
        along = (inner * unit).mean(-1, keepdim=True)
        into_weight = (grad * unit).reshape(-1, weight.shape[0]).sum(0)
        return scale * (inner - unit * along), into_weight


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return RMSNorm.apply(x, self.weight)
