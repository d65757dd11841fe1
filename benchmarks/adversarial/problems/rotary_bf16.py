"""
op_type: pointwise
policy: anything-faster
about: Rotary position embedding of bfloat16 features at given positions, with angles in single precision. Draws are the first tokens of a conversation.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half).float() / half)
        angles = positions.float()[:, None] * rates
        cos, sin = angles.cos(), angles.sin()
        first, second = x.float().chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)


def get_inputs():
    return [torch.randn(4, 8, 192, 64).bfloat16(), torch.arange(192) + torch.randint(0, 64, ())]


def get_init_inputs():
    return []
