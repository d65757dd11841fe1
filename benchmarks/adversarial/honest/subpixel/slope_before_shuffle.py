"""
problem: subpixel
style: One slope is the same for all channels, so it comes before the shuffle; the shuffle is one copy of a view.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, 4 * channels, 3, padding=1)
        self.act = torch.nn.PReLU()

    def forward(self, x):
        y = F.prelu(self.conv(x), self.act.weight)
        n, c, h, w = y.shape
        parts = y.reshape(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
        return parts.reshape(n, c // 4, 2 * h, 2 * w)
