"""
problem: bias_gradient
style: Threads have sums of their own and add them up under a mutex of C11.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, grad):
        grad = grad.contiguous()
        out = grad.new_empty(grad.shape[1])
        lib.column_sums(grad, out, grad.shape[0], grad.shape[1])
        return out
