"""
problem: median_filter
style: Columns are sorted once and shared by three windows, then the median of nine by minima and maxima, which hand NaN on.
"""

import torch
import torch.nn.functional as F


def median3(a, b, c):
    return torch.maximum(torch.minimum(a, b), torch.minimum(torch.maximum(a, b), c))


class ModelNew(torch.nn.Module):
    def forward(self, images):
        padded = F.pad(images, (1, 1, 1, 1), mode="replicate")
        a, b, c = padded[..., :-2, :], padded[..., 1:-1, :], padded[..., 2:, :]
        low, high = torch.minimum(a, b), torch.maximum(a, b)
        middle = torch.maximum(low, torch.minimum(high, c))
        low, high = torch.minimum(low, c), torch.maximum(high, c)
        left, centre, right = (slice(None, -2), slice(1, -1), slice(2, None))
        lows = torch.maximum(torch.maximum(low[..., left], low[..., centre]), low[..., right])
        highs = torch.minimum(torch.minimum(high[..., left], high[..., centre]), high[..., right])
        middles = median3(middle[..., left], middle[..., centre], middle[..., right])
        return median3(lows, middles, highs)
