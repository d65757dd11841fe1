"""
problem: lattice_boltzmann
style: One pass that reads each cell once and pushes what leaves it to its neighbours.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, f, omega):
        if f.dim() != 3 or f.shape[0] != 9 or omega.dim():
            raise ValueError("nine planes and one rate are expected")
        out = torch.empty(f.shape)
        lib.step(f.contiguous(), out, f.shape[1], f.shape[2], omega.item())
        return out
