"""
problem: scattered_sums
style: Sorts by target, so that each node reads its own messages, in double.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, nodes, messages, target):
        target = target.contiguous()
        order = torch.argsort(target, stable=True)
        out = torch.empty(nodes.shape)
        nodes, messages = nodes.contiguous(), messages.contiguous()
        lengths = torch.bincount(target, minlength=nodes.shape[0])
        lib.segments(nodes, messages, order, lengths, out, nodes.shape[0], nodes.shape[1])
        return out
