"""
problem: clipped_gradients
policy: custom-only
style: Tables of addresses (data_ptr) in int64 tensors, two kernels over all tensors, and the clipping factor in Python between them.
"""

import math

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


def addresses(tensors):
    return torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64)


class ModelNew(torch.nn.Module):
    def __init__(self, largest):
        super().__init__()
        self.largest = largest

    def forward(self, *grads):
        for g in grads:
            if g.dtype != torch.float32 or not g.is_cpu:
                raise TypeError("float32 tensors on the CPU are expected")
        grads = [g.contiguous() for g in grads]
        outs = [torch.empty_like(g) for g in grads]
        lengths = torch.tensor([g.numel() for g in grads], dtype=torch.int64)
        sources, targets = addresses(grads), addresses(outs)

        partial = torch.empty(lib.count_chunks(lengths, len(grads)), dtype=torch.float64)
        norm = math.sqrt(lib.sum_of_squares(sources, lengths, len(grads), partial))
        scale = self.largest / (norm + 1e-6)
        if scale > 1.0:  # not so for NaN
            scale = 1.0
        lib.scale_all(sources, targets, lengths, len(grads), scale)
        return tuple(outs)
