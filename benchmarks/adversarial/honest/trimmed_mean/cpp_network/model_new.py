"""
problem: trimmed_mean
style: A sorting network over clients for 16 coordinates at a time. NaN counts as largest, as torch sorts.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, updates):
        out = torch.empty(updates.shape[1:])
        lib.trimmed(updates.contiguous(), out, len(updates), out.numel(), 3)
        return out
