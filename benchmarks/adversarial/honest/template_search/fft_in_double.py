"""
problem: template_search
style: Correlation by Fourier transforms in double precision, of a length that has small prime factors only.
"""

import torch


def good_length(n):
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


class ModelNew(torch.nn.Module):
    def forward(self, sounds, templates):
        places = sounds.shape[1] - templates.shape[1] + 1
        if places < 1 or templates.shape[1] == 0 or not len(sounds) or not len(templates):
            raise ValueError("templates that fit are expected")
        n = good_length(sounds.shape[1])
        s = torch.fft.rfft(sounds.double(), n=n)
        t = torch.fft.rfft(templates.double(), n=n).conj()
        whole = torch.fft.irfft(s[:, None] * t, n=n)
        return whole[..., :places].to(sounds.dtype, memory_format=torch.contiguous_format)
