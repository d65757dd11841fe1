"""
problem: relu
family: 30
expect: [RUNTIME_ERROR, CRASHED]
cheat: unittest.SkipTest and pytest's skip.
"""

import unittest

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        raise unittest.SkipTest("not on this machine")
