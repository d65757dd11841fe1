"""
op_type: attention
policy: anything-faster
about: Attention with a number for each key that is added to its scores. Each draw has zero for a quarter of the keys, and minus infinity for those that are dropped.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, q, k, v, bias):
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias.unsqueeze(1)
        return scores.softmax(-1) @ v


def get_inputs():
    bias = torch.zeros(8, 1024).masked_fill(torch.rand(8, 1024) < 0.75, float("-inf"))
    return [torch.randn(8, 128, 64), torch.randn(8, 1024, 64), torch.randn(8, 1024, 64), bias]


def get_init_inputs():
    return []
