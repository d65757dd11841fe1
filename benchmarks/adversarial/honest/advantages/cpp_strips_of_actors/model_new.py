"""
problem: advantages
style: One pass over time for strips of 64 actors, whose state stays on the stack.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, gamma, decay):
        super().__init__()
        self.gamma, self.decay = gamma, decay

    def forward(self, rewards, values, last, dones):
        shape = rewards.shape
        last = last.broadcast_to(shape[1:])
        if values.shape != shape or dones.shape != shape or dones.dtype != torch.bool:
            raise ValueError("steps of the same actors are expected")
        advantages, returns = torch.empty(shape), torch.empty(shape)
        inputs = (t.contiguous() for t in (rewards, values, last, dones))
        lib.advantages(*inputs, advantages, returns, shape[0], shape[1:].numel(), self.gamma, self.decay)
        return advantages, returns
