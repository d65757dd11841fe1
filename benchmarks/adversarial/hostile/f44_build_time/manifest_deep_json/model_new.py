"""
problem: relu
family: 44
expect: [COMPILE_ERROR, RUNTIME_ERROR, INCORRECT_NUMERICAL]
cheat: A solution.json of 100000 nested lists in a sub-folder, parsed by whoever builds.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "sub/kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
