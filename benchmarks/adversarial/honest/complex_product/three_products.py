"""
problem: complex_product
style: Gauss's three real products instead of four.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        first = (a.real + a.imag) @ b.real
        second = a.real @ (b.imag - b.real)
        third = a.imag @ (b.real + b.imag)
        return torch.complex(first - third, first + second)
