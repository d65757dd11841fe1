"""
problem: ragged_pad
style: ctypes.memmove of each sequence into memory of zeros.
"""

import ctypes

import torch


class ModelNew(torch.nn.Module):
    @torch.no_grad()
    def forward(self, rows, lengths):
        sizes = lengths.tolist()
        if not sizes or min(sizes) < 0 or sum(sizes) != len(rows):
            raise ValueError("lengths must add up to the number of rows")
        rows = rows.contiguous()
        step = rows[:1].numel() * rows.element_size() if len(rows) else 0
        out = rows.new_zeros((len(sizes), max(sizes), *rows.shape[1:]))
        source, target, room = rows.data_ptr(), out.data_ptr(), max(sizes) * step
        for size in sizes:
            ctypes.memmove(target, source, size * step)
            source += size * step
            target += room
        return out, torch.arange(max(sizes)) < lengths[:, None]
