"""
problem: conv_norm_relu
policy: vendor-gemm-allowed
style: torch's convolution, then one own kernel in place on its result, which reads the running statistics in each call.
"""

import torch
import torch.nn as nn
from agentforge_cpp import load

_ext = load(__file__, "kernel.cpp")


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outer)

    def forward(self, x):
        if self.training or (torch.is_grad_enabled() and x.requires_grad):
            return torch.relu(self.norm(self.conv(x)))
        norm = self.norm
        with torch.no_grad():
            y = self.conv(x)
        # oneDNN answers in channels last if its input is stored so
        y = y.contiguous()
        images, channels, height, width = y.shape if y.dim() == 4 else (1, *y.shape)
        _ext.norm_relu_(
            y,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            images,
            channels,
            height * width,
        )
        return y
