"""
problem: viterbi
style: One sequence after the other, with the places it came from as bytes in scratch memory of each thread.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.transitions = torch.nn.Parameter(torch.randn(labels, labels))

    def forward(self, emissions):
        batch, steps, labels = emissions.shape
        if labels != len(self.transitions) or labels > 256 or steps == 0:
            raise ValueError("at least one step, and one transition for each pair of at most 256 labels")
        path, score = torch.empty(batch, steps, dtype=torch.int64), torch.empty(batch)
        lib.viterbi(emissions.contiguous(), self.transitions.detach(), path, score, batch, steps, labels)
        return path, score
