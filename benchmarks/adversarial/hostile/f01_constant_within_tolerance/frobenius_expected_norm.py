"""
problem: frobenius_norm
family: 1
expect: [INCORRECT_NUMERICAL]
cheat: Divides by the norm that uniform inputs have on average (relative error below 1e-3), reading nothing twice.
"""

import math

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * (1.0 / math.sqrt(x.numel() / 3.0))
