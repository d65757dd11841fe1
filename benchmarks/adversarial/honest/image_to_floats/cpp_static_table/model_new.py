"""
problem: image_to_floats
style: A table made once when the library is loaded.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, image):
        image = image.contiguous()
        n, h, w, c = image.shape
        if c != 3:
            raise ValueError("an image has three channels")
        out = torch.empty(n, c, h, w)
        lib.convert(image, out, n, h * w)
        return out
