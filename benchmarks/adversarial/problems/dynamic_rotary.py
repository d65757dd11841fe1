"""
op_type: pointwise
policy: anything-faster
about: Rotary embeddings with dynamic NTK scaling, as in Qwen. The base grows with the length of sequences that are longer than those of training.
"""

import torch


def rotate(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


class Model(torch.nn.Module):
    def __init__(self, trained):
        super().__init__()
        self.trained = trained

    def forward(self, q, k):
        steps, width = q.shape[-2:]
        base = 10000.0
        if steps > self.trained:
            base *= (2.0 * steps / self.trained - 1.0) ** (width / (width - 2))
        rates = base ** (-torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(steps).float(), rates)
        angles = torch.cat([angles, angles], -1)
        cos, sin = angles.cos(), angles.sin()
        return q * cos + rotate(q) * sin, k * cos + rotate(k) * sin


def get_inputs():
    return [torch.randn(1, 4, 384, 64), torch.randn(1, 4, 384, 64)]


def get_init_inputs():
    return [256]
