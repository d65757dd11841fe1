"""
problem: relu
family: 41
policy: anything-faster
expect: [OUT_OF_MEMORY, RUNTIME_ERROR, CRASHED, TIMEOUT]
cheat: Five gigabytes of shared memory without a file, touched and then given back as it seems. They stay, but are no longer resident in the process.
"""

import mmap

import torch

_POPULATE_WRITE = 23  # of madvise(2)
_PART = 64 << 20
kept = []
for _ in range(80):
    kept.append(mmap.mmap(-1, _PART))
    try:
        kept[-1].madvise(_POPULATE_WRITE)
    except OSError:
        kept[-1].write(bytes(_PART))
    kept[-1].madvise(mmap.MADV_DONTNEED)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
