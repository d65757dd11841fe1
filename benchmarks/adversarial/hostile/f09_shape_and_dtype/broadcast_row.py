"""
problem: softmax_rows
family: 9
expect: [INCORRECT_SHAPE, INCORRECT_NUMERICAL]
cheat: A single row that broadcasts against the reference.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x[:1], dim=-1)
