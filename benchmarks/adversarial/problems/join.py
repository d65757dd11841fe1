"""
op_type: other
policy: anything-faster
about: For each key of a query the first place in a table of keys, or -1.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, table, queries):
        ordered, places = torch.sort(table, stable=True)
        at = torch.searchsorted(ordered, queries).clamp(max=len(table) - 1)
        return torch.where(ordered[at] == queries, places[at], -1)


def get_inputs():
    keys = torch.randint(-(2**40), 2**40, (30_000,))
    table = keys[torch.randint(0, 30_000, (30_000,))]
    return [table, keys[torch.randint(0, 30_000, (60_000,))]]


def get_init_inputs():
    return []
