"""
problem: near_identity
family: 5
expect: [INCORRECT_NUMERICAL, CHEATING]
cheat: Returns the input itself.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
