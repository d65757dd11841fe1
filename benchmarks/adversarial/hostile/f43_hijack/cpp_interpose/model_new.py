"""
problem: relu
family: 43
expect: [INCORRECT_NUMERICAL, CRASHED, RUNTIME_ERROR, CHEATING, COMPILE_ERROR]
cheat: Exports memcpy, clock_gettime and write of its own, with a global load, to shadow libc's.
"""

import ctypes

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")
ctypes.CDLL(str(lib.path), mode=ctypes.RTLD_GLOBAL)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
