"""
problem: long_columns
style: Kahan's compensated sum over 32 blocks of rows, in torch, then a pairwise sum. Sums that are not finite are taken the plain way.
"""

import torch

BLOCKS = 32


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        each = rows // BLOCKS
        if each == 0 or not x.is_floating_point():
            return x.mean(0)
        total = x[:each].clone()
        lost = torch.zeros_like(total)
        for i in range(1, BLOCKS):
            part = x[i * each : (i + 1) * each] - lost
            new = total + part
            lost = (new - total).sub_(part)
            total = new
        total -= lost
        rest = x[each * BLOCKS :]
        while len(total) > 1:
            half = len(total) // 2
            if len(total) % 2:
                rest = torch.cat([rest, total[-1:]])
            total = total[:half] + total[half : 2 * half]
        total = (total.double().sum(0) + rest.double().sum(0)).to(x.dtype)
        return torch.where(total.isfinite(), total, x.sum(0)) / rows
