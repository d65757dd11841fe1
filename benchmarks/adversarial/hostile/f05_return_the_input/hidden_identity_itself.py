"""
problem: hidden_identity
family: 5
expect: [CHEATING, unverified, suspicious]
cheat: Returns the input itself, where no value can betray it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
