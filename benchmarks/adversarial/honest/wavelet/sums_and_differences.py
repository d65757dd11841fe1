"""
problem: wavelet
style: Sums and differences of neighbours by slices. The last row or column of an odd size has no neighbour and does not count.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        details = []
        for _ in range(3):
            batch, channels, height, width = x.shape
            if height < 2 or width < 2:
                raise ValueError("images are too small")
            height, width = height // 2, width // 2
            half = x[..., : 2 * height, : 2 * width] * 0.5
            upper, lower = half[..., ::2, :], half[..., 1::2, :]
            total, apart = upper + lower, upper - lower
            bands = torch.empty(batch, channels, 3, height, width)
            torch.sub(total[..., ::2], total[..., 1::2], out=bands[:, :, 0])
            torch.add(apart[..., ::2], apart[..., 1::2], out=bands[:, :, 1])
            torch.sub(apart[..., ::2], apart[..., 1::2], out=bands[:, :, 2])
            details.append(bands)
            x = total[..., ::2] + total[..., 1::2]
        return details, x
