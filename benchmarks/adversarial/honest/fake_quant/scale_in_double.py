"""
problem: fake_quant
style: scale and quotient in float64, so other elements are exactly between two steps
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.double()
        scale = wide.abs().amax(-1, keepdim=True) / 127
        return (torch.round(wide / scale) * scale).to(x.dtype)
