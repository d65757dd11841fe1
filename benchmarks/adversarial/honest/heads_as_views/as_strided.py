"""
problem: heads_as_views
style: The same views of the input by as_strided, from its own strides and offset, and lengths in place on their own tensor.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 3 or x.shape[-1] % 24:
            raise ValueError("three projections of eight heads are expected")
        batch, steps, width = x.shape
        far, near, one = x.stride()
        size = width // 24
        q, k, v = (
            x.as_strided(
                (batch, 8, steps, size), (far, size * one, near, one), x.storage_offset() + part * 8 * size * one
            )
            for part in range(3)
        )
        return q, k, v, (k * k).sum(-1).sqrt_()
