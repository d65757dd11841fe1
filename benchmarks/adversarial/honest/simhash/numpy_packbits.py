"""
problem: simhash
style: numpy packs eight sides into each byte, and eight bytes are read as one integer.
"""

import sys

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.planes = torch.nn.Parameter(torch.randn(inner, 64))

    @torch.no_grad()
    def forward(self, x):
        sides = torch.mm(x, self.planes).ge(0).numpy()
        packed = np.packbits(sides, axis=1, bitorder="little").view("<i8")[:, 0]
        return torch.from_numpy(packed if sys.byteorder == "little" else packed.astype(np.int64))
