"""
problem: pareto_mask
style: A search that ends at the first candidate that dominates, and that begins with the one that dominated last. Answers do not depend on where it begins.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, costs):
        if costs.dim() != 2:
            raise ValueError("one row for each candidate is expected")
        out = torch.empty(len(costs), dtype=torch.bool)
        lib.front(costs.contiguous(), out, len(costs), costs.shape[1])
        return out
