"""
problem: int8_rows
style: Whole numbers as floats are packed when the first call comes, and again if the buffer changes. Scales come after the product.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        weight = torch.randn(outer, inner)
        scale = weight.abs().amax(1) / 127
        self.register_buffer("quantised", (weight / scale[:, None]).round().to(torch.int8))
        self.scale = torch.nn.Parameter(scale)
        self.bias = torch.nn.Parameter(torch.zeros(outer))
        self._packed, self._key = None, None

    def forward(self, x):
        key = self.quantised.data_ptr(), self.quantised._version, x.dtype
        if key != self._key:
            self._packed, self._key = self.quantised.t().to(x.dtype).contiguous(), key
        return torch.addcmul(self.bias, x @ self._packed, self.scale)
