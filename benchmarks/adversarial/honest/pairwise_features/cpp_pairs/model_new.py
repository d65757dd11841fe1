"""
problem: pairwise_features
style: Only products below the diagonal, written to where they belong, without a matrix between.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, dense, bags):
        samples, count, width = bags.shape
        if dense.shape != (samples, width):
            raise ValueError("dense features as wide as the embeddings are expected")
        out = torch.empty(samples, width + count * (count + 1) // 2)
        lib.interact(dense.contiguous(), bags.contiguous(), out, samples, count, width)
        return out
