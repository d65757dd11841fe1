"""
op_type: other
policy: anything-faster
about: Ranks of the numbers of each row, as Spearman's correlation takes them. Equal numbers share the mean of their ranks.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        one, other = x.unsqueeze(2), x.unsqueeze(1)
        return (one > other).sum(2) + 0.5 * ((one == other).sum(2) - 1)


def get_inputs():
    return [torch.randn(64, 256, dtype=torch.float64)]


def get_init_inputs():
    return []
