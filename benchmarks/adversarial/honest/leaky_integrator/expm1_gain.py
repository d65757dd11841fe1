"""
problem: leaky_integrator
style: The gain is expm1 of the rate, which loses no digits, and multiplies the whole input at once.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.full((channels,), -2.0))

    def forward(self, x):
        rate = F.softplus(self.rate)
        decay, out = torch.exp(-rate), x * -torch.expm1(-rate)
        for before, now in zip(out.unbind(1)[:-1], out.unbind(1)[1:]):
            now.addcmul_(before, decay)
        return out
