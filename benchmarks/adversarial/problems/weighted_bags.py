"""
op_type: embedding
policy: anything-faster
about: Weighted sums of the rows of each bag. The last offset is the number of all rows.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(rows, width, mode="sum", include_last_offset=True)

    def forward(self, ids, offsets, weights):
        if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets.diff() < 0).any():
            raise ValueError("offsets go from zero to the number of rows")
        return self.bags(ids, offsets, weights)


def get_inputs():
    inner = torch.randint(0, 40_001, (999,)).sort().values
    offsets = torch.cat([torch.tensor([0]), inner, torch.tensor([40_000])])
    return [torch.randint(0, 30_000, (40_000,)), offsets, torch.rand(40_000)]


def get_init_inputs():
    return [30_000, 64]
