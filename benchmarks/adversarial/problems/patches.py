"""
op_type: conv
policy: anything-faster
about: Patches of 16 by 16 pixels as tokens with learned positions, the first layer of a vision transformer.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.proj = torch.nn.Conv2d(3, width, 16, stride=16)
        self.position = torch.nn.Parameter(torch.randn(1, tokens, width) * 0.02)

    def forward(self, images):
        tokens = self.proj(images).flatten(2).transpose(1, 2)
        return tokens + self.position


def get_inputs():
    return [torch.randn(4, 3, 112, 112)]


def get_init_inputs():
    return [192, 49]
