"""
op_type: spectral
policy: anything-faster
about: The logarithm of mel energies of audio, as speech recognisers read it.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, size, hop, bands):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("bank", torch.rand(bands, size // 2 + 1) / size)

    def forward(self, audio):
        spectrum = torch.stft(audio, self.size, self.hop, window=self.window, center=True, return_complex=True)
        return torch.log(self.bank @ spectrum.abs().square() + 1e-3)


def get_inputs():
    return [torch.randn(4, 32000)]


def get_init_inputs():
    return [400, 160, 80]
