"""
problem: softmax_rows
style: The shortest registration of TORCH_LIBRARY, a function without schema or dispatch key; memory from at::empty_like, threads from at::parallel_for.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.ops.softmax.softmax(x)
