"""
problem: distances
style: Sums of squared differences, without cancellation.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
