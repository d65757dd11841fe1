"""
problem: empirical_rank
style: numpy's searchsorted from the right, which puts NaN behind all other numbers as torch does.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, sample):
        found = np.searchsorted(sample.contiguous().numpy(), x.contiguous().numpy(), side="right")
        return torch.from_numpy(np.asarray(found)).to(x.dtype).div_(sample.numel())
