"""
problem: matmul
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: bfloat16 product, cast back.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return (a.bfloat16() @ b.bfloat16()).float()
