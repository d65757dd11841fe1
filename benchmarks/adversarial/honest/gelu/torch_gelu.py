"""
problem: gelu
policy: anything-faster
style: the torch operator
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.GELU()

    def forward(self, x):
        return self.inner(x)
