"""
problem: relu
family: 41
expect: [OUT_OF_MEMORY, RUNTIME_ERROR, CRASHED]
cheat: bytearray by bytearray at import (it stops itself at 12 GB).
"""

import torch

hoard = [bytearray(256 << 20) for _ in range(48)]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
