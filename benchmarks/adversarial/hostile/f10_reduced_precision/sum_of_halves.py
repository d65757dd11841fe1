"""
problem: total_sum
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Rounds its input to half precision and adds in float32; a million errors of rounding cancel out.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.half().float().sum()
