"""
problem: relu
policy: anything-faster
style: Maps files whose names hold characters at which Python splits lines, and a byte that is no UTF-8; the names stand in /proc/PID/maps.
"""

import mmap
import os

import torch

kept = []
for name in (b"first\x0bsecond", b"first\x1c\x1dsecond", b"\xff"):
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, mmap.PAGESIZE)
    kept.append(mmap.mmap(descriptor, mmap.PAGESIZE))
    os.close(descriptor)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
