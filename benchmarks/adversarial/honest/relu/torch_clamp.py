"""
problem: relu
policy: anything-faster
style: clamp
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0.0)
