"""
problem: batch_statistics
style: One scale and one centre for each channel, by as many images at a time as the second-level cache holds. Its size is asked of a shell when the file is imported.
"""

import os

import torch


def _cache_bytes():
    try:
        return int(os.popen("getconf LEVEL2_CACHE_SIZE").read())
    except (OSError, ValueError):
        return 0


CACHE = max(_cache_bytes(), 1 << 20)


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels, track_running_stats=False)

    def forward(self, x):
        norm = self.norm
        var, mean = torch.var_mean(x, dim=(0, 2, 3), unbiased=False, keepdim=True)
        scale = torch.rsqrt(var + norm.eps) * norm.weight[:, None, None]
        out, bias = torch.empty_like(x, memory_format=torch.contiguous_format), norm.bias[:, None, None]
        images = max(1, CACHE // max(1, 2 * x[:1].nbytes))
        for a, b in zip(x.split(images), out.split(images)):
            torch.sub(a, mean, out=b)
            b.mul_(scale).add_(bias)
        return out
