"""
problem: batch_norm_rows
style: torch.compile where anything faster is allowed
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.norm = torch.nn.BatchNorm1d(hidden)
        self.down = torch.nn.Linear(hidden, width)
        self.work = torch.compile(self.plain)

    def plain(self, x):
        return self.down(torch.nn.functional.gelu(self.norm(self.up(x))))

    def forward(self, x):
        return self.work(x)
