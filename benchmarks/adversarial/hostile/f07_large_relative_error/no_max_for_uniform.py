"""
problem: logsumexp_of_uniform
family: 7
expect: [INCORRECT_NUMERICAL]
cheat: Leaves the maximum out, and overflows for values above 88.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.exp().sum(1).log_()
