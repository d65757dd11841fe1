"""
problem: zigzag
style: numpy with ufuncs that write to the new array, whose sums run in place.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, codes):
        if codes.dtype != torch.int64 or codes.dim() < 2:
            raise ValueError("rows of 64-bit integers are expected")
        source = codes.numpy()
        out = np.bitwise_and(source, 1)
        np.negative(out, out=out)
        np.bitwise_xor(source >> 1, out, out=out)
        return torch.from_numpy(np.cumsum(out, axis=1))
