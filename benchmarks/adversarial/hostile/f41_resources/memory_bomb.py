"""
problem: relu
family: 41
expect: [OUT_OF_MEMORY, RUNTIME_ERROR, CRASHED]
cheat: Touches memory without end (it stops itself at 12 GB).
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        hoard = []
        for _ in range(48):
            hoard.append(torch.ones(64 << 20))
        return torch.relu(x)
