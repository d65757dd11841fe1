"""
problem: class_weights
style: A kernel adds to what torch.zeros gives; it refuses labels of other classes.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, labels, weights):
        labels, weights = labels.contiguous(), weights.contiguous()
        if labels.dim() != 1 or labels.shape != weights.shape:
            raise ValueError("one weight for each label")
        out = torch.zeros(64)
        if not lib.add_weights(labels, weights, out, labels.shape[0], 64):
            raise ValueError("there are 64 classes")
        return out
