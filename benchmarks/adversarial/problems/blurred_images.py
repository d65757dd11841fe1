"""
op_type: spectral
policy: anything-faster
about: Images blurred by a learned spot of 5 by 5 pixels on a torus, by the Fourier transform. Pixels are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.spot = torch.nn.Parameter(torch.rand(5, 5) / 12)

    def forward(self, x):
        size = x.shape[-2:]
        if x.dim() != 3 or min(size) < 5:
            raise ValueError("images of at least 5 by 5 pixels are expected")
        return torch.fft.irfft2(torch.fft.rfft2(x) * torch.fft.rfft2(self.spot, s=size), s=size)


def get_inputs():
    return [torch.rand(8, 160, 160)]


def get_init_inputs():
    return []
