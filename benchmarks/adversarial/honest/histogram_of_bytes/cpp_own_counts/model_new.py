"""
problem: histogram_of_bytes
style: Counts of its own for each thread, merged in a critical section.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, images):
        images = images.contiguous()
        out = torch.zeros(images.shape[0], 256, dtype=torch.int64)
        lib.count(images, out, images.shape[0], images[:1].numel())
        return out
