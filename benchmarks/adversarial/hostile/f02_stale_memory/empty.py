"""
problem: softmax_rows
family: 2
expect: [INCORRECT_NUMERICAL, NONDETERMINISTIC]
cheat: Returns uninitialised memory and hopes for the freed reference output.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.empty_like(x)
