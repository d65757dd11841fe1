"""
op_type: reduction
policy: anything-faster
about: Sums of the rows of 128 segments. `offsets` has the first row of each, and ends with the number of all rows.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, offsets):
        edges = offsets.tolist()
        return torch.stack([x[a:b].sum(0) for a, b in zip(edges[:-1], edges[1:])])


def get_inputs():
    rows = 8192
    inner = torch.randint(0, rows + 1, (127,)).sort().values
    return [torch.randn(rows, 48), torch.cat([torch.tensor([0]), inner, torch.tensor([rows])])]


def get_init_inputs():
    return []
