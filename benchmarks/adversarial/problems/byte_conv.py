"""
op_type: conv
policy: anything-faster
about: A convolution of 8-bit integers with 32-bit sums, then a multiplier of 15 bits and a shift for each channel, rounded and saturated, as on phones.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (outer, inner, 3, 3), dtype=torch.int8))
        self.register_buffer("bias", torch.randint(-5000, 5000, (outer,), dtype=torch.int32))
        self.register_buffer("multiplier", torch.randint(16384, 32768, (outer,)))

    def forward(self, x):
        n, c, h, w = x.shape
        padded = x.new_zeros(n, c, h + 2, w + 2, dtype=torch.int32)
        padded[:, :, 1:-1, 1:-1] = x
        total = self.bias.view(1, -1, 1, 1).expand(n, -1, h, w).clone()
        weight = self.weight.int()
        for dy in range(3):
            for dx in range(3):
                part = padded[:, :, dy : dy + h, dx : dx + w].permute(0, 2, 3, 1).reshape(-1, c)
                total += (part @ weight[:, :, dy, dx].t()).view(n, h, w, -1).permute(0, 3, 1, 2)
        scaled = (total.long() * self.multiplier.view(1, -1, 1, 1) + (1 << 24)) >> 25
        return scaled.clamp(-128, 127).to(torch.int8)


def get_inputs():
    return [torch.randint(-128, 128, (2, 16, 24, 24), dtype=torch.int8)]


def get_init_inputs():
    return [16, 32]
