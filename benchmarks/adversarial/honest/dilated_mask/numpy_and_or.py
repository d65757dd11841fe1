"""
problem: dilated_mask
style: numpy's logical operators on shifted slices of arrays with a false border, in place.
"""

import numpy as np
import torch


def step(m, combine):
    """One step over the inner pixels; the border stays false."""
    inner = m[:, 1:-1, 1:-1].copy()
    for near in (m[:, :-2, 1:-1], m[:, 2:, 1:-1], m[:, 1:-1, :-2], m[:, 1:-1, 2:]):
        combine(inner, near, out=inner)
    m[:, 1:-1, 1:-1] = inner


class ModelNew(torch.nn.Module):
    def forward(self, masks):
        if masks.dtype != torch.bool or masks.dim() != 3:
            raise ValueError("a batch of bool masks is expected")
        m = np.pad(masks.numpy(), ((0, 0), (1, 1), (1, 1)))
        step(m, np.logical_and)
        step(m, np.logical_and)
        step(m, np.logical_or)
        step(m, np.logical_or)
        return torch.from_numpy(m[:, 1:-1, 1:-1].copy())
