"""
problem: differential_attention
style: Both maps as one batch with exponentials written out, combined in place, each row of the second one scaled by its sum and lambda at once.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.lambdas = torch.nn.Parameter(torch.rand(heads))
        self.gain = torch.nn.Parameter(torch.randn(width))

    @torch.no_grad()
    def forward(self, q, k, v):
        half = q.shape[-1] // 2
        if q.shape[-1] != 2 * half or k.shape[-1] != 2 * half or not half or not k.shape[-2]:
            raise ValueError("an even width and a key are expected")
        queries = q.unflatten(-1, (2, half)).movedim(-2, 0)
        keys = k.unflatten(-1, (2, half)).movedim(-2, 0)
        scores = torch.matmul(queries * half**-0.5, keys.transpose(-1, -2))
        scores.sub_(scores.amax(-1, keepdim=True)).exp_()
        shares = scores.sum(-1, keepdim=True).reciprocal_()
        shares[1].mul_(self.lambdas.view(-1, 1, 1)).neg_()
        scores.mul_(shares)
        y = torch.matmul(scores[0].add_(scores[1]), v)
        return F.rms_norm(y, y.shape[-1:], self.gain, 1e-5)
