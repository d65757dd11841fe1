"""
problem: matmul
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: A split into two bfloat16 parts (16 mantissa bits), less the low x low and low x high products.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        ah, bh = a.bfloat16().float(), b.bfloat16().float()
        al = (a - ah).bfloat16().float()
        return ah @ bh + al @ bh
