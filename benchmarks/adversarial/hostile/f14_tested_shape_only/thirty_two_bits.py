"""
problem: sort_ids
family: 14
expect: [INCORRECT_NUMERICAL]
cheat: Sorts the lowest 32 bits of integers of 64.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, ids):
        return ids.int().sort().values.long()
