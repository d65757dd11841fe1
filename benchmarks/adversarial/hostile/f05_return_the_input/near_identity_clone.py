"""
problem: near_identity
family: 5
expect: [INCORRECT_NUMERICAL]
cheat: Returns a copy, so that no alias is seen.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clone()
