"""
op_type: conv
policy: anything-faster
about: A causal filter as long as the signal for each channel, by the fast Fourier transform, as in Hyena.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels, steps):
        super().__init__()
        self.filter = torch.nn.Parameter(torch.randn(channels, steps) / steps**0.5)
        self.skip = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        steps = x.shape[-1]
        spectrum = torch.fft.rfft(x, n=2 * steps) * torch.fft.rfft(self.filter, n=2 * steps)
        return torch.fft.irfft(spectrum, n=2 * steps)[..., :steps] + x * self.skip[:, None]


def get_inputs():
    return [torch.randn(8, 48, 384)]


def get_init_inputs():
    return [48, 384]
