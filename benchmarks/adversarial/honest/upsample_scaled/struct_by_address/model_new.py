"""
problem: upsample_scaled
style: Sizes go to C++ in a ctypes.Structure by its address; the interpolation, scale and shift are one kernel.
"""

import ctypes

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class Sizes(ctypes.Structure):
    _fields_ = [
        ("images", ctypes.c_int64),
        ("channels", ctypes.c_int64),
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
    ]


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(channels))
        self.shift = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        x = x.contiguous()
        images, channels, height, width = x.shape
        if channels != self.scale.numel():
            raise ValueError(f"expected {self.scale.numel()} channels, not {channels}")
        if not (height and width):
            raise ValueError("an image without pixels cannot be enlarged")
        out = x.new_empty((images, channels, 2 * height, 2 * width))
        sizes = Sizes(images, channels, height, width)
        lib.upsample_scaled(x, self.scale, self.shift, out, ctypes.addressof(sizes))
        return out
