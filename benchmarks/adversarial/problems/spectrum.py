"""
op_type: other
policy: anything-faster
about: Low-pass filter of real signals by their spectrum.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, gain):
        spectrum = torch.fft.rfft(x) * gain
        return spectrum, torch.fft.irfft(spectrum, n=x.shape[-1])


def get_inputs():
    return [torch.randn(64, 512), torch.rand(257)]


def get_init_inputs():
    return []
