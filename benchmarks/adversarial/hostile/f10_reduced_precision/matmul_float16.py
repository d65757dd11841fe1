"""
problem: matmul
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: float16 product, cast back.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
