"""
problem: rotary
style: Sines and cosines of half the angles, and both turned halves are written into their place. Answers are views of one buffer for queries and keys.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, positions, base=10000.0):
        half = q.shape[-1] // 2
        if q.shape[-1] % 2 or q.shape[-1] != k.shape[-1]:
            raise ValueError("an even number of columns is expected")
        rates = base ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = positions[:, None, :, None].float() * rates
        cos, sin = angles.cos(), angles.sin()
        both = torch.empty(q.numel() + k.numel(), dtype=q.dtype)
        out = both[: q.numel()].view(q.shape), both[q.numel() :].view(k.shape)
        for x, y in zip((q, k), out):
            a, b = x[..., :half], x[..., half:]
            torch.mul(a, cos, out=y[..., :half]).addcmul_(b, sin, value=-1)
            torch.mul(b, cos, out=y[..., half:]).addcmul_(a, sin)
        return out
