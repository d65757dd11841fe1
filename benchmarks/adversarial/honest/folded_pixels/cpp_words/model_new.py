"""
problem: folded_pixels
style: Four rows of bytes at a time; each pixel of a row goes to one of four planes. Refuses other types and sizes.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.uint8:
            raise TypeError("bytes are expected")
        if x.dim() < 3 or not x.numel() or x.shape[-1] % 4 or x.shape[-2] % 4:
            raise ValueError("four must divide the sizes of the image")
        *batch, channels, height, width = x.shape
        out = torch.empty(*batch, channels * 16, height // 4, width // 4, dtype=torch.uint8)
        lib.fold(x.contiguous(), out, x.numel() // (height * width), height, width)
        return out
