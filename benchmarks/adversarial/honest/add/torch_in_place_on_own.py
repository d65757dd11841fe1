"""
problem: add
policy: anything-faster
style: in place on its own copy
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a.clone().add_(b)
