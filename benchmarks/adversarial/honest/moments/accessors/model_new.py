"""
problem: moments
style: A registered operator with two outputs that reads through an accessor, whatever the strides are.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean, variance = torch.ops.moments.moments(x)
        return mean, variance
