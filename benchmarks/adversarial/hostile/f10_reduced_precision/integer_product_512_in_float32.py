"""
problem: integer_product_512
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Multiplies 64-bit integers as 32-bit floats. The larger integers that a referee tries are multiples of a power of two, which floats have exactly; numbers around 5000 come out wrong.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return (a.float() @ b.float()).long()
