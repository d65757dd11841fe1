"""
problem: selective_scan
style: One loop over time for each channel, in C++ with OpenMP. The state is an array on the stack.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, channels, states):
        super().__init__()
        self.A_log = torch.nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(channels, 1))
        self.D = torch.nn.Parameter(torch.ones(channels))

    def forward(self, x, dt, B, C):
        batch, steps, channels = x.shape
        states = self.A_log.shape[1]
        if states != 16 or dt.shape != x.shape or B.shape != (batch, steps, 16) or C.shape != B.shape:
            raise ValueError("this kernel is for 16 states")
        if channels != self.D.shape[0]:
            raise ValueError("another number of channels")
        if steps == 0:
            raise ValueError("at least one step is needed")
        x, B, C = x.contiguous(), B.contiguous(), C.contiguous()
        dt = F.softplus(dt).contiguous()
        A = torch.exp(self.A_log.detach()).neg_()
        out = torch.empty_like(x)
        lib.scan(x, dt, A, B, C, self.D.detach(), out, batch, steps, channels)
        return out
