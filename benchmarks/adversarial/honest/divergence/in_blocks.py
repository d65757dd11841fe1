"""
problem: divergence
style: log-softmax by maximum and sum, and float32 sums over blocks of 64 columns
"""

import torch
import torch.nn.functional as F


def log_softmax(x):
    x = x - x.amax(-1, keepdim=True)
    return x - x.exp().sum(-1, keepdim=True).log()


class ModelNew(torch.nn.Module):
    def forward(self, a, b, labels):
        la, lb = log_softmax(a), log_softmax(b)
        parts = [p.sum() for p in (lb.exp() * (lb - la)).split(64, dim=-1)]
        return sum(parts) / len(a), F.binary_cross_entropy_with_logits(a, labels)
