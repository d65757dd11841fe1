"""
op_type: conv
policy: anything-faster
about: A causal dilated convolution with weight normalisation and leaky ReLU, as in a temporal convolutional network.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm


class Model(torch.nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.dilation = dilation
        self.conv = weight_norm(torch.nn.Conv1d(channels, channels, 3, dilation=dilation))

    def forward(self, x):
        return F.leaky_relu(self.conv(F.pad(x, (2 * self.dilation, 0))), 0.1)


def get_inputs():
    return [torch.randn(8, 64, 512)]


def get_init_inputs():
    return [64, 4]
