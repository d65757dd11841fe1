"""
problem: softmax_rows
policy: anything-faster
style: plain torch, reassociated
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return e / e.sum(dim=-1, keepdim=True)
