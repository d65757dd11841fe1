"""
op_type: pointwise
policy: anything-faster
about: Rotary position embedding of queries and keys at given positions, halves against halves as in Llama.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, q, k, positions, base=10000.0):
        half = q.shape[-1] // 2
        rates = base ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = positions[:, None, :, None].float() * rates
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()

        def turned(x):
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

        return turned(q), turned(k)


def get_inputs():
    return [torch.randn(2, 8, 256, 64), torch.randn(2, 2, 256, 64), torch.randint(0, 4096, (2, 256))]


def get_init_inputs():
    return []
