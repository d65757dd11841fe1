"""
problem: relu
family: 41
expect: [OUT_OF_MEMORY, RUNTIME_ERROR]
cheat: Asks for a petabyte.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.empty(1 << 48)[: x.numel()].view(x.shape))
