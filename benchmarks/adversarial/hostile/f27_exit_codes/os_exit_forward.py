"""
problem: relu
family: 27
expect: [CRASHED, RUNTIME_ERROR, CHEATING]
cheat: os._exit(0) in forward.
"""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        os._exit(0)
