"""
problem: requantised
family: 14
expect: [INCORRECT_NUMERICAL, suspicious]
cheat: Multiplies in floats, which is exact, and leaves the limits to the conversion, which wraps around. What should be 127 may become -128. Scales are chosen so that some values saturate; no draw has one.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, scales):
        sums = x.float() @ weight.float().t()
        return sums.mul_(scales).round_().to(torch.int8)
