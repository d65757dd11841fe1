"""
op_type: other
policy: anything-faster
about: The spectral convolution of a Fourier neural operator in one dimension. Its weight is complex, and acts on the lowest 16 frequencies.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        scale = 1 / channels**2
        self.weight = torch.nn.Parameter(scale * torch.rand(channels, channels, modes, dtype=torch.cfloat))

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        low = spectrum[:, :, : self.modes]
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", low, self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])


def get_inputs():
    return [torch.randn(16, 48, 256)]


def get_init_inputs():
    return [48, 16]
