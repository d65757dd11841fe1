"""
problem: linear_bias
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Autocast to bfloat16.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x).float()
