"""
problem: pooled_codes
style: All codebooks as one table, whose rows are read by one call.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, parts, width):
        super().__init__()
        self.codebooks = torch.nn.Parameter(torch.randn(parts, 256, width))
        self.first = torch.arange(parts, dtype=torch.int32) * 256

    def forward(self, codes):
        used = codes.shape[1]
        if used > self.first.numel() or codes.dtype != torch.uint8 or used == 0:
            raise ValueError("one byte for each codebook is expected")
        rows = codes.int() + self.first[:used]
        return F.embedding(rows, self.codebooks.flatten(0, 1)).flatten(1)
