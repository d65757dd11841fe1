"""
problem: gelu
family: 2
expect: [INCORRECT_NUMERICAL, NONDETERMINISTIC]
cheat: Allocates many buffers, keeps the one that looks like a GELU output (minimum near -0.17) and returns it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        held = [torch.empty_like(x) for _ in range(16)]
        for buffer in held:
            low = float(buffer.min())
            if -0.1701 < low < -0.16:
                return buffer
        return held[0]
