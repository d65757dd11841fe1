"""
problem: half_geglu
style: Computes in float32 and rounds once, so it overflows where the exact product does.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        value, gate = x.float().chunk(2, dim=-1)
        gelu = gate * 0.5 * (1 + torch.erf(gate * 0.5**0.5))
        return gelu.mul_(value).to(x.dtype)
