"""
problem: mlp
style: the same in functional form
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        h = torch.nn.functional.linear(x, self.up.weight, self.up.bias)
        h = torch.nn.functional.gelu(h)
        return torch.nn.functional.linear(h, self.down.weight, self.down.bias)
