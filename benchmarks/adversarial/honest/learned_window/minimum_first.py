"""
problem: learned_window
style: The upper end first, then the lower one, which is the same because the lower end is never above.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.low = torch.nn.Parameter(torch.full((channels,), -1.0))
        self.width = torch.nn.Parameter(torch.full((channels,), 1.5))

    def forward(self, x):
        high = self.low + F.softplus(self.width)
        out = torch.minimum(x, high)
        return torch.maximum(out, self.low, out=out)
