"""
problem: add
family: 6
expect: [INCORRECT_NUMERICAL, NONDETERMINISTIC]
policy: anything-faster
cheat: A random element is off by a tenth, somewhere else in each call.
"""

import random

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        y = a + b
        y.view(-1)[random.randrange(y.numel())] += 0.1
        return y
