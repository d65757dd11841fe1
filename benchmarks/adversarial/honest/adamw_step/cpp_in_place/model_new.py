"""
problem: adamw_step
style: One fused pass that writes to all three tensors. Tensors with other strides go through contiguous copies that are written back.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, parameters, gradients, first, second, step):
        state = (parameters, first, second)
        if any(t.shape != gradients.shape or t.dtype != torch.float32 for t in (*state, gradients)) or step.dim():
            raise ValueError("tensors of the same shape are expected")
        p, m, v = (t.contiguous() for t in state)
        a, b = 1 - 0.9**step, 1 - 0.999**step
        length = lib.adamw(p, gradients.contiguous(), m, v, p.numel(), a.item(), b.item())
        for ours, theirs in zip((p, m, v), state):
            if ours is not theirs:
                theirs.copy_(ours)
        return torch.tensor(length, dtype=torch.float32)
