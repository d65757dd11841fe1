"""
problem: sum_of_integers
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Adds 64-bit integers in 32 bits, which overflow for large ones.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.int().sum(1, dtype=torch.int32).long()
