"""
problem: integer_linear
style: Sums of so few bytes are exact in float32.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (128, 256), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(128))

    def forward(self, x, scale):
        return (x.float() @ self.weight.float().t()) * (scale[:, None] * self.scale)
