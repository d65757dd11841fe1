"""
problem: flow_warp
style: Coordinates stay in pixels, so the scale to [-1, 1] and back is left out, and the answer is a little more exact than torch's.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, image, flow):
        batch, channels, height, width = image.shape
        if flow.shape != (batch, 2, height, width) or height < 2 or width < 2:
            raise ValueError("two numbers for each pixel are expected")
        image, flow = image.contiguous(), flow.contiguous()
        out = torch.empty_like(image)
        lib.warp(image, flow, out, batch, channels, height, width)
        return out
