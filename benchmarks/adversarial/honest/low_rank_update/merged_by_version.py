"""
problem: low_rank_update
style: The adapter is merged into a copy of the weight at the first call, in double precision, and again if one of the three has changed.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer, rank, alpha):
        super().__init__()
        self.base = torch.nn.Linear(inner, outer)
        self.lora_a = torch.nn.Linear(inner, rank, bias=False)
        self.lora_b = torch.nn.Linear(rank, outer, bias=False)
        self.scale = alpha / rank
        self.merged, self.versions = None, None

    @torch.no_grad()
    def forward(self, x):
        parts = (self.base.weight, self.lora_a.weight, self.lora_b.weight)
        versions = [(p.data_ptr(), p._version) for p in parts]
        if versions != self.versions:
            w, a, b = (p.double() for p in parts)
            self.merged = torch.addmm(w, b, a, alpha=self.scale).to(self.base.weight.dtype)
            self.versions = versions
        return F.linear(x, self.merged, self.base.bias)
