"""
problem: ragged_pad
style: The mask first, and all rows at once through it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, rows, lengths):
        if len(lengths) == 0 or (lengths < 0).any() or int(lengths.sum()) != len(rows):
            raise ValueError("lengths must add up to the number of rows")
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        out = rows.new_zeros((*mask.shape, *rows.shape[1:]))
        out[mask] = rows
        return out, mask
