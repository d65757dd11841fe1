"""
problem: matmul
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Rounds both operands to TF32's ten mantissa bits.
"""

import torch


def tf32(x):
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return tf32(a) @ tf32(b)
