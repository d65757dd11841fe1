"""
problem: cross_entropy
style: log-sum-exp per row, mean in double
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        out = torch.empty(())
        lib.cross_entropy(logits, targets, out, logits.shape[0], logits.shape[1])
        return out
