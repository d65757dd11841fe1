"""
problem: weighted_bags
style: One pass without gathered rows. Threads take bags as they come free, and the kernel reports the first id that the table lacks.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(rows, width, mode="sum", include_last_offset=True)

    def forward(self, ids, offsets, weights):
        if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets.diff() < 0).any() or weights.shape != ids.shape:
            raise ValueError("offsets go from zero to the number of rows, and each row has a weight")
        table = self.bags.weight.contiguous()
        out = torch.empty(len(offsets) - 1, table.shape[1])
        bad = lib.bags(
            table, ids.long().contiguous(), offsets.long().contiguous(), weights.contiguous(), out, *out.shape, len(table)
        )
        if bad >= 0:
            raise IndexError(f"the table has no row {int(ids[bad])}")
        return out
