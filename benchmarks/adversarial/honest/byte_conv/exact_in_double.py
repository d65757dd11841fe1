"""
problem: byte_conv
style: A convolution in float64, where all products and sums of these integers are exact, then integers again for the rounding.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (outer, inner, 3, 3), dtype=torch.int8))
        self.register_buffer("bias", torch.randint(-5000, 5000, (outer,), dtype=torch.int32))
        self.register_buffer("multiplier", torch.randint(16384, 32768, (outer,)))

    def forward(self, x):
        if x.dtype != torch.int8 or x.dim() != 4:
            raise ValueError("images of 8-bit integers are expected")
        total = F.conv2d(x.double(), self.weight.double(), padding=1).round_().long()
        total += self.bias.view(-1, 1, 1)
        total.mul_(self.multiplier.view(-1, 1, 1)).add_(1 << 24)
        return total.bitwise_right_shift_(25).clamp_(-128, 127).to(torch.int8)
