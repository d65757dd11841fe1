"""
problem: blurred_images
style: Keeps the spectrum of the spot for each size, with a copy of the spot that is compared in each call. The product is in place.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.spot = torch.nn.Parameter(torch.rand(5, 5) / 12)
        self._spectra = {}

    @torch.no_grad()
    def forward(self, x):
        size = tuple(x.shape[-2:])
        if x.dim() != 3 or min(size) < 5:
            raise ValueError("images of at least 5 by 5 pixels are expected")
        spot, spectrum = self._spectra.get(size, (None, None))
        if spot is None or not torch.equal(spot, self.spot):
            spectrum = torch.fft.rfft2(self.spot, s=size)
            self._spectra[size] = self.spot.clone(), spectrum
        return torch.fft.irfft2(torch.fft.rfft2(x).mul_(spectrum), s=size)
