"""
problem: mu_law
style: The 256 samples come from numpy in double and from functools.lru_cache; each channel multiplies them by its gain before it looks them up.
"""

import functools

import numpy as np
import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


@functools.lru_cache(maxsize=None)
def mu_law_table(levels: int = 256) -> torch.Tensor:
    mu = levels - 1
    y = np.arange(levels, dtype=np.float64) * (2.0 / mu) - 1.0
    return torch.from_numpy((np.sign(y) * np.expm1(np.abs(y) * np.log1p(mu)) / mu).astype(np.float32))


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(channels) + 0.5)

    def forward(self, codes):
        if codes.dtype is not torch.uint8 or codes.dim() < 2 or codes.shape[-2] != len(self.gain):
            raise ValueError("bytes of shape (..., channels, samples) are expected")
        codes = codes.contiguous()
        out = torch.empty(codes.shape, dtype=torch.float32)
        *batch, channels, samples = codes.shape
        count = 1
        for size in batch:
            count *= size
        lib.decode(codes, mu_law_table(), self.gain, out, count, channels, samples)
        return out
