"""
problem: distinct_ids
style: numpy's unique.
"""

import numpy
import torch


class ModelNew(torch.nn.Module):
    def forward(self, ids):
        return tuple(
            torch.from_numpy(x) for x in numpy.unique(ids.numpy(), return_inverse=True, return_counts=True)
        )
