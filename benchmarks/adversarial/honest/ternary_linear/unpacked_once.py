"""
problem: ternary_linear
style: Digits are unpacked to floats at the first call, through a table of all 256 bytes, and again when the buffer is another one or has changed.
"""

import torch

_DIGITS = torch.stack([torch.arange(256) >> shift & 3 for shift in (0, 2, 4, 6)], -1).float() - 1


class ModelNew(torch.nn.Module):
    _kept = None

    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("packed", torch.zeros(outer, inner // 4, dtype=torch.uint8))
        self.register_buffer("scale", torch.ones(outer))

    def unpacked(self):
        packed = self.packed
        if self._kept is None or self._kept[0] is not packed or self._kept[1] != packed._version:
            self._kept = packed, packed._version, _DIGITS[packed.long()].flatten(1).t().contiguous()
        return self._kept[2]

    def forward(self, x):
        factor = 127 / x.abs().amax(-1, keepdim=True).clamp_(min=1e-5)
        rounded = (x * factor).round_().clamp_(-128, 127)
        return torch.matmul(rounded, self.unpacked()).div_(factor).mul_(self.scale)
