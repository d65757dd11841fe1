"""
op_type: experts
policy: anything-faster
about: A mixture of experts that begins as copies of one dense layer (sparse upcycling). Two experts for each token.
"""

import copy

import torch


class Model(torch.nn.Module):
    def __init__(self, width, hidden, experts):
        super().__init__()
        dense = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, width)
        )
        self.experts = torch.nn.ModuleList(copy.deepcopy(dense) for _ in range(experts))
        self.gate = torch.nn.Linear(width, experts, bias=False)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            out.index_add_(0, token, expert(x[token]) * weights[token, place, None])
        return out


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128, 512, 8]
