"""
problem: rmsnorm
policy: anything-faster
style: torch.nn.functional.rms_norm
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x):
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
