"""
op_type: gemm
policy: anything-faster
about: A linear layer with weights of -1, 0 and 1, four to a byte, and inputs rounded to 8 bits, as in BitNet b1.58. The two bits 3 stand for 2.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        digits = torch.randint(0, 3, (outer, inner // 4, 4), dtype=torch.uint8)
        self.register_buffer("packed", digits[..., 0] | digits[..., 1] << 2 | digits[..., 2] << 4 | digits[..., 3] << 6)
        self.register_buffer("scale", torch.rand(outer) * 0.1)

    def forward(self, x):
        digits = torch.stack([self.packed >> shift & 3 for shift in (0, 2, 4, 6)], -1).flatten(1)
        factor = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        rounded = (x * factor).round().clamp(-128, 127)
        return rounded @ (digits.float() - 1).t() / factor * self.scale


def get_inputs():
    return [torch.randn(32, 1024)]


def get_init_inputs():
    return [1024, 768]
