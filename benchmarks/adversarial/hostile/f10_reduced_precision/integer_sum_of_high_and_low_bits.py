"""
problem: sum_of_integers
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Adds 64-bit integers as 32-bit floats, the last ten bits apart from the others. That is exact for multiples of 1024 up to 2**34, and for all integers up to 2**24.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        low = x & 1023
        high = (x - low).sum(1, dtype=torch.float32)
        return high.long() + low.sum(1, dtype=torch.float32).long()
