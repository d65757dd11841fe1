"""
problem: mean_square
style: at::parallel_reduce in double under a NoGradGuard, in a fragment of a library, with a scalar tensor made in C++.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")
mean_square = torch.ops.reductions.mean_square.default


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return mean_square(x)
