"""
problem: mlp
family: 3
expect: [INCORRECT_NUMERICAL, CHEATING]
cheat: Zeroes its weights at construction and whenever called, hoping that the reference shares them.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        with torch.no_grad():
            for p in self.parameters():
                p.zero_()
        return torch.zeros_like(x)
