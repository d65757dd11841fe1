"""
problem: bf16_attention
style: Products, bias and softmax in float32, rounded once at the end, so the answer is more exact than torch's. The bias is kept for each shape.
"""

import functools

import torch


@functools.lru_cache(maxsize=8)
def bias_for(heads, steps, keys, dtype):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    apart = torch.arange(keys)[None] - torch.arange(steps)[:, None]
    return torch.where(apart > 0, -torch.inf, slopes[:, None, None] * apart).to(dtype).float()


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        bias = bias_for(q.shape[1], q.shape[2], k.shape[2], q.dtype)
        scores = torch.matmul(q.float(), k.float().transpose(-1, -2)).mul_(q.shape[-1] ** -0.5).add_(bias)
        return torch.matmul(torch.softmax(scores, -1), v.float()).to(q.dtype)
