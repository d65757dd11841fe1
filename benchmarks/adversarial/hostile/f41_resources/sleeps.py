"""
problem: relu
family: 41
expect: [TIMEOUT]
cheat: Sleeps in forward.
"""

import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(300)
        return torch.relu(x)
