"""
problem: conv_norm_relu
style: Folds the norm into weight and bias of the convolution in each call, since training may go on.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = torch.nn.Conv2d(inner, outer, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(outer)

    def forward(self, x):
        norm = self.norm
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        weight = self.conv.weight * scale[:, None, None, None]
        return F.conv2d(x, weight, norm.bias - norm.running_mean * scale, padding=1).relu_()
