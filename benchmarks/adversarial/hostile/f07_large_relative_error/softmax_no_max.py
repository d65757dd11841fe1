"""
problem: softmax_rows
family: 7
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Skips the maximum; right for normal inputs, infinite for large ones.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        e = torch.exp(x)
        return e / e.sum(-1, keepdim=True)
