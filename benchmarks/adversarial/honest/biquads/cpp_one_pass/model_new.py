"""
problem: biquads
style: All sections in one pass over the sound, with states in double precision.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sections = [[0.9, -1.2, 0.5, -1.3, 0.6], [1.1, 0.3, 0.2, 0.4, 0.3], [0.7, -0.5, 0.1, -0.8, 0.25]]
        self.register_buffer("sections", torch.tensor(sections))

    def forward(self, x):
        if x.dim() != 2 or x.shape[1] == 0:
            raise ValueError("channels of sound are expected")
        out = torch.empty(x.shape)
        lib.filter(x.contiguous(), self.sections, out, *x.shape, len(self.sections))
        return out
