"""
problem: scaled_transpose
family: 22
expect: [unverified]
policy: anything-faster
max_speedup: 1.05
cheat: Copies the view that the reference returns; a sample of contiguous memory was read faster within the clock.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return (x * 2.0 + 1.0).t().contiguous()
