"""
op_type: sort
policy: anything-faster
about: The order of records by all of their columns, the first one first. Equal records stay as they are.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, records):
        order = torch.arange(len(records))
        for column in reversed(records.unbind(1)):
            order = order[torch.argsort(column[order], stable=True)]
        return order


def get_inputs():
    return [torch.randint(0, 1000, (8192, 6))]


def get_init_inputs():
    return []
