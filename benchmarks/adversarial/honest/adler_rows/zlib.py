"""
problem: adler_rows
style: Python's own zlib, row by row, on numpy's view of the bytes.
"""

import zlib

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.dtype not in (torch.uint8, torch.bool):
            raise TypeError("rows of bytes are expected")
        return torch.tensor([zlib.adler32(row) for row in x.contiguous().numpy()], dtype=torch.int64)
