"""
problem: gated_recurrence
style: A loop in Python with one small kernel for each step, which writes its state into the answer.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.decay = torch.nn.Parameter(torch.randn(width) * 0.3)

    def forward(self, gates, values):
        gates, values, decay = gates.contiguous(), values.contiguous(), self.decay.detach()
        steps, rows, width = values.shape
        if gates.shape != values.shape or width != decay.numel():
            raise ValueError(f"unexpected shapes {tuple(gates.shape)} and {tuple(values.shape)}")
        if not steps:
            raise ValueError("at least one step is expected")
        states = torch.empty_like(values)
        state = states[0]
        lib.first_step(values[0], gates[0], state, rows, width)
        for t in range(1, steps):
            following = states[t]
            lib.step(gates[t], values[t], decay, state, following, rows, width)
            state = following
        return states, state.clone()
