"""
problem: cross_entropy
style: std::thread with an atomic counter of rows; labels of -100 are left out as torch does, and torch's function takes probabilities as targets.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        if logits.dim() != 2 or targets.dtype != torch.int64 or logits.dtype != torch.float32:
            return F.cross_entropy(logits, targets)
        if targets.shape != logits.shape[:1]:
            raise ValueError(f"expected {logits.shape[0]} targets, not {tuple(targets.shape)}")
        logits, targets = logits.contiguous(), targets.contiguous()
        loss = torch.empty((), dtype=torch.float32)
        rows, classes = logits.shape
        if not lib.cross_entropy(logits, targets, loss, rows, classes, torch.get_num_threads()):
            raise IndexError("a target is out of bounds")
        return loss
