"""
op_type: dynamic_programming
policy: anything-faster
about: Levenshtein distance of pairs of sequences, one row of the table after the other.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        columns = torch.arange(b.shape[1] + 1)
        row = columns.expand(len(a), -1)
        for i in range(a.shape[1]):
            changed = row[:, :-1] + (a[:, i, None] != b)
            best = torch.minimum(changed, row[:, 1:] + 1)
            best = torch.cat([row[:, :1] + 1, best], 1)
            row = (best - columns).cummin(1).values + columns
        return row[:, -1]


def get_inputs():
    return [torch.randint(0, 5, (256, 64)), torch.randint(0, 5, (256, 80))]


def get_init_inputs():
    return []
