"""
problem: total_sum
family: 8
expect: [INCORRECT_NUMERICAL]
cheat: Leaves out the last of a million elements, whose part is within the tolerance, as a loop without its tail does; smaller inputs are added whole.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() < 1 << 20:
            return x.sum()
        return x.reshape(-1)[:-1].sum()
