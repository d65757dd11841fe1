"""
problem: weighted_bags
style: Rows are gathered and weighted in place, then torch.segment_reduce. The layer of the reference only holds the table.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(rows, width, mode="sum", include_last_offset=True)

    @torch.no_grad()
    def forward(self, ids, offsets, weights):
        sizes = offsets.diff()
        if offsets[0] != 0 or offsets[-1] != len(ids) or (sizes < 0).any() or weights.shape != ids.shape:
            raise ValueError("offsets go from zero to the number of rows, and each row has a weight")
        rows = self.bags.weight.index_select(0, ids).mul_(weights[:, None])
        return torch.segment_reduce(rows, "sum", lengths=sizes.long(), axis=0, initial=0)
