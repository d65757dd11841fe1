"""
op_type: pointwise
policy: anything-faster
about: Level of a spectrum after an echo is added to it, which passes through a complex response for each channel. Both spectra are inputs.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.response = torch.nn.Parameter(torch.randn(channels, dtype=torch.complex64))

    def forward(self, spectrum, echo):
        return (spectrum + echo * self.response[:, None]).abs()


def get_inputs():
    return [torch.randn(256, 2048, dtype=torch.complex64), torch.randn(256, 2048, dtype=torch.complex64)]


def get_init_inputs():
    return [256]
