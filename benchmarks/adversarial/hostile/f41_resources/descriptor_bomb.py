"""
problem: relu
family: 41
expect: [RUNTIME_ERROR, CRASHED, INCORRECT_NUMERICAL]
cheat: Opens descriptors until it cannot.
"""

import os

import torch

held = []
try:
    for _ in range(100000):
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
