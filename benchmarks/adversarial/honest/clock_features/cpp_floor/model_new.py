"""
problem: clock_features
style: one pass in C++ whose division rounds down.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, seconds):
        hours = torch.empty(seconds.shape, dtype=torch.int64)
        weekdays = torch.empty(seconds.shape, dtype=torch.int64)
        lib.clock_features(seconds.contiguous(), hours, weekdays, seconds.numel())
        return hours, weekdays
