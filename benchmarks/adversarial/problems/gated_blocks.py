"""
op_type: model
policy: anything-faster
about: Three residual blocks with a LayerNorm and a gated unit each, for tabular data.
"""

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.value = torch.nn.Linear(width, 2 * width)
        self.gate = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(self.value(h) * torch.sigmoid(self.gate(h)))


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(depth))
        self.head = torch.nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(F.relu(x)).squeeze(-1)


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128, 3]
