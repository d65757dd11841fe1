"""
problem: bias_gradient
style: Two kernels with scratch memory from torch.empty between them, with as many parts as torch has threads.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, grad):
        shape = grad.shape[1:]
        grad = grad.contiguous().view(grad.shape[0], shape.numel())
        rows, cols = grad.shape
        parts = max(1, min(rows, 2 * torch.get_num_threads()))
        scratch = torch.empty((parts, cols), dtype=torch.float64)
        out = torch.empty(shape, dtype=grad.dtype, device=grad.device)
        lib.partial_sums(grad, scratch, rows, cols, parts)
        lib.combine(scratch, out, cols, parts)
        return out
