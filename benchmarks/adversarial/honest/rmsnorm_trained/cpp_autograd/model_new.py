"""
problem: rmsnorm_trained
policy: custom-only
style: Forward and backward in C++ as in the tutorial on dispatched operators, with a torch::autograd::Function behind the Autograd key that calls the CPU kernel below it.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.ops.rms.rms_norm(x, self.weight)
