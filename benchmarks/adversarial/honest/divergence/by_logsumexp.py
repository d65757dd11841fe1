"""
problem: divergence
style: logsumexp of each row once, softplus for the second loss
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, a, b, labels):
        la, lb = a.logsumexp(-1, keepdim=True), b.logsumexp(-1, keepdim=True)
        p = (b - lb).exp()
        kl = (p * ((b - lb) - (a - la))).sum(-1).mean() if len(a) else (p * a).sum() / 0
        return kl, (F.softplus(a) - a * labels).mean()
