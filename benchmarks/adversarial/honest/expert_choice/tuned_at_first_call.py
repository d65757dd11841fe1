"""
problem: expert_choice
style: Has two ways that give the same, measures both with the clock at the first call for each number of tokens, and keeps the faster one.
"""

import time

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, inner, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, inner) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, inner, width) * inner**-0.5)
        self._best = {}

    def together(self, x, chosen, shares):
        y = torch.bmm(F.silu(torch.bmm(x[chosen], self.up)), self.down) * shares[..., None]
        return torch.zeros_like(x).index_add_(0, chosen.flatten(), y.flatten(0, 1))

    def in_turn(self, x, chosen, shares):
        out = torch.zeros_like(x)
        for rows, share, up, down in zip(chosen, shares, self.up, self.down):
            hidden = F.silu(x.index_select(0, rows) @ up)
            out.index_add_(0, rows, (hidden * share[:, None]) @ down)
        return out

    def tune(self, *arguments):
        times = {}
        for way in (self.together, self.in_turn):
            way(*arguments)
            start = time.perf_counter()
            way(*arguments)
            times[way] = time.perf_counter() - start
        return min(times, key=times.get)

    @torch.no_grad()
    def forward(self, x):
        shares, chosen = self.gate(x).softmax(-1).t().topk(len(x) // 4)
        if len(x) not in self._best:
            self._best[len(x)] = self.tune(x, chosen, shares)
        return self._best[len(x)](x, chosen, shares)
