"""
problem: life
style: 64 cells in one word, and their neighbours counted by adders of bits.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, boards):
        boards = boards.contiguous()
        if boards.dtype != torch.bool or boards.dim() != 3:
            raise TypeError("boards of booleans are expected")
        out = torch.empty_like(boards)
        lib.live(boards, out, *boards.shape, 4)
        return out
