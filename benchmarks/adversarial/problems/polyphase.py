"""
op_type: conv
policy: anything-faster
about: Sound resampled by 3/2. Zeros are put between the samples, a low-pass filter follows, and every other sample stays.
"""

import math

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, taps):
        super().__init__()
        t = torch.arange(taps) - (taps - 1) / 2
        window = torch.hann_window(taps + 2, periodic=False)[1:-1]
        self.register_buffer("filter", torch.sinc(t / 3) * window)

    def forward(self, x):
        batch, steps = x.shape
        wide = x.new_zeros(batch, steps * 3)
        wide[:, ::3] = x
        taps = self.filter.numel()
        y = F.conv1d(wide[:, None], self.filter[None, None], padding=taps // 2)[:, 0]
        return y[:, ::2]


def get_inputs():
    return [torch.randn(16, 6000)]


def get_init_inputs():
    return [61]
