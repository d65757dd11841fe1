"""
problem: row_median
style: A pool of threads by multiprocessing.pool, which lives as long as the process.
"""

from multiprocessing.pool import ThreadPool

import torch

pool = ThreadPool(2)


def _median(part):
    found = part.kthvalue((part.shape[1] + 1) // 2, dim=1).values
    return torch.where(part.isnan().any(dim=1), torch.full_like(found, float("nan")), found)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] < 2:
            return _median(x)
        return torch.cat(pool.map(_median, x.chunk(2)))
