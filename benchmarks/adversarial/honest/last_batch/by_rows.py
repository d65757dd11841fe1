"""
problem: last_batch
style: keeps the input row by row after the answer is computed.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("last", torch.zeros(rows, columns))

    def forward(self, x):
        y = x.clamp(min=0.0)
        for kept, rows in zip(self.last.split(256), x.split(256)):
            kept.copy_(rows)
        return y
