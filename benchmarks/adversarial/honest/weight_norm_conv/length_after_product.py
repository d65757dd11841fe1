"""
problem: weight_norm_conv
style: g / |v| in each call, multiplied to what the direction gives; the bias comes after it.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm


class ModelNew(torch.nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.dilation = dilation
        self.conv = weight_norm(torch.nn.Conv1d(channels, channels, 3, dilation=dilation))

    def forward(self, x):
        parts = self.conv.parametrizations.weight
        g, v = parts.original0, parts.original1
        scale = g / torch.linalg.vector_norm(v, dim=(1, 2), keepdim=True)
        y = F.conv1d(F.pad(x, (2 * self.dilation, 0)), v, dilation=self.dilation)
        y = torch.addcmul(self.conv.bias[:, None], y, scale[:, :, 0])
        return F.leaky_relu_(y, 0.1)
