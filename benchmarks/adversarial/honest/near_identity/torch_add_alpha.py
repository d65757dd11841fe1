"""
problem: near_identity
policy: anything-faster
style: torch.add with alpha
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.add(x, torch.sin(x), alpha=1e-4)
