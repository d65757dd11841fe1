"""
problem: echo_level
style: C++ on real and imaginary parts; agentforge_cpp refuses lazy conjugates.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.response = torch.nn.Parameter(torch.randn(channels, dtype=torch.complex64))

    def forward(self, spectrum, echo):
        out = torch.empty(spectrum.shape)
        lib.level(spectrum.contiguous(), echo.contiguous(), self.response.detach().contiguous(), out, *spectrum.shape)
        return out
