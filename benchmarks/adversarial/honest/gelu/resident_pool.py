"""
problem: gelu
policy: anything-faster
style: A pool of threads that lives as long as the process, sleeps between calls, and is waited for.
"""

from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(2)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() == 0 or x.shape[0] < 4:
            return torch.nn.functional.gelu(x)
        out = torch.empty(x.shape)
        half = x.shape[0] // 2
        halves = [slice(0, half), slice(half, None)]
        list(pool.map(lambda part: out[part].copy_(torch.nn.functional.gelu(x[part])), halves))
        return out
