"""
problem: relu
policy: anything-faster
style: An allocator of its own: memory of answers of which nobody holds a part any more is used for later ones.
"""

import weakref

import numpy
import torch

free = []


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32:
            return torch.relu(x)
        fitting = [i for i, a in enumerate(free) if a.shape == tuple(x.shape)]
        memory = free.pop(fitting[0]) if fitting else numpy.empty(tuple(x.shape), numpy.float32)
        view = memory[:]  # every tensor on this memory holds it
        weakref.finalize(view, free.append, memory)
        return torch.clamp_min(x, 0.0, out=torch.from_numpy(view))
