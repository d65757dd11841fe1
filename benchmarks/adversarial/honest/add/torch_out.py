"""
problem: add
policy: anything-faster
style: out= into a buffer of its own, new in each call
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        torch.add(a, b, out=out)
        return out
