"""
problem: folded_pixels
style: An as_strided view of the image in the order of the answer, copied once. Raises another error for sizes that the reference refuses too.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() < 3 or not x.numel() or x.shape[-1] % 4 or x.shape[-2] % 4:
            raise ValueError(f"four does not divide the sizes of an image of {tuple(x.shape)}")
        *batch, channels, height, width = x.shape
        *far, plane, down, right = x.stride()
        view = x.as_strided(
            (*batch, channels, 4, 4, height // 4, width // 4),
            (*far, plane, down, right, 4 * down, 4 * right),
            x.storage_offset(),
        )
        out = torch.empty(view.shape, dtype=x.dtype)
        return out.copy_(view).view(*batch, channels * 16, height // 4, width // 4)
