"""
problem: position_ids
style: Counts in 16 bits where the length of a sequence allows it, otherwise in 64.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, ids):
        narrow = torch.int16 if ids.shape[1] < 1 << 15 else torch.int64
        kept = ids != 1
        return kept.cumsum(1, dtype=narrow).mul_(kept).to(torch.int64).add_(1)
