"""
problem: relu
policy: anything-faster
style: An allocator of its own: memory of answers that nobody holds any more is used for later ones.
"""

import weakref

import torch

free = []


class ModelNew(torch.nn.Module):
    def forward(self, x):
        fitting = [i for i, t in enumerate(free) if t.shape == x.shape and t.dtype == x.dtype]
        memory = free.pop(fitting[0]) if fitting else torch.empty_like(x, memory_format=torch.contiguous_format)
        out = memory[:]  # a tensor of its own, on memory that comes back when it goes
        torch.clamp_min(x, 0.0, out=out)
        weakref.finalize(out, free.append, memory)
        return out
