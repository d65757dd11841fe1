"""
problem: runs
style: numpy finds where neighbours differ. Lengths are differences of those places.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 1:
            raise ValueError("a vector is expected")
        numbers = x.numpy()
        begins = np.ones(len(numbers), dtype=bool)
        np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        inverse = np.cumsum(begins, dtype=np.int64) - 1
        lengths = np.diff(starts, append=len(numbers)).astype(np.int64, copy=False)
        return tuple(torch.from_numpy(a) for a in (numbers[starts], inverse, lengths))
