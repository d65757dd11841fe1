"""
problem: packed_bits
style: numpy's packbits, whose bytes are read as little-endian words of 32 bits.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, flags):
        if flags.dtype != torch.bool or flags.dim() != 2:
            raise ValueError("rows of bools are expected")
        rows, cols = flags.shape
        words = -(-cols // 32)
        packed = np.zeros((rows, words * 4), np.uint8)
        bits = np.packbits(flags.numpy(), axis=1, bitorder="little")
        packed[:, : bits.shape[1]] = bits
        return torch.from_numpy(packed.view("<u4").astype(np.int64))
