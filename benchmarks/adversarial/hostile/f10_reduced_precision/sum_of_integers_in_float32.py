"""
problem: sum_of_integers
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Adds 64-bit integers as 32-bit floats, exact up to 16,777,216; larger ones are tried as multiples of a power of two only.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.sum(1, dtype=torch.float32).long()
