"""
op_type: attention
policy: anything-faster
about: Attention in bfloat16 with ALiBi, scores and probabilities rounded on their way.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        heads, steps = q.shape[1], q.shape[2]
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        apart = torch.arange(k.shape[2])[None] - torch.arange(steps)[:, None]
        bias = torch.where(apart > 0, -torch.inf, slopes[:, None, None] * apart).to(q.dtype)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
        return torch.softmax(scores, -1) @ v


def get_inputs():
    return [torch.randn(2, 8, 192, 64, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []
