"""
problem: router
style: sorts negated probabilities, so of equal ones the expert with the lowest number comes first
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)

    def forward(self, x):
        p = torch.nn.functional.linear(x, self.gate.weight).softmax(-1)
        chosen = p.neg().sort(dim=-1, stable=True).indices[:, :2]
        weights = p.gather(-1, chosen)
        return weights / weights.sum(-1, keepdim=True), chosen
