"""
problem: rotary_bf16
family: 14
expect: [INCORRECT_NUMERICAL]
cheat: Takes the positions in the type of the features before it makes angles of them. bfloat16 has whole numbers up to 256, so later tokens turn by the angle of a neighbour.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half).float() / half)
        angles = torch.outer(positions.to(x.dtype).float(), rates)
        cos, sin = angles.cos(), angles.sin()
        first, second = x.chunk(2, -1)
        out = torch.empty(x.shape, dtype=x.dtype)
        left, right = out.chunk(2, -1)
        left.copy_(first * cos - second * sin)
        right.copy_(second * cos + first * sin)
        return out
