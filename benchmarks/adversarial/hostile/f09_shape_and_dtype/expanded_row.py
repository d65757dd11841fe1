"""
problem: l2_norm
family: 9
expect: [INCORRECT_NUMERICAL, CHEATING]
cheat: Expands one row to the right shape with stride zero.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        row = x[:1] / x[:1].norm(dim=1, keepdim=True)
        return row.expand(x.shape)
