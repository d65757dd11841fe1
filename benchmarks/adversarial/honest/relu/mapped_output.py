"""
problem: relu
policy: anything-faster
style: The answer lies in anonymous memory that it maps itself for each call.
"""

import mmap

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() == 0:
            return torch.relu(x)
        memory = mmap.mmap(-1, x.numel() * x.element_size())
        out = torch.frombuffer(memory, dtype=x.dtype, count=x.numel()).view(x.shape)
        return torch.clamp_min(x, 0.0, out=out)
