"""
problem: router
style: the two largest by two maxima instead of topk
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        first, i = p.max(-1, keepdim=True)
        second, j = p.scatter(-1, i, -1.0).max(-1, keepdim=True)
        weights = torch.cat([first, second], -1)
        return weights / weights.sum(-1, keepdim=True), torch.cat([i, j], -1)
