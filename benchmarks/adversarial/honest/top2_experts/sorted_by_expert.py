"""
problem: top2_experts
style: Chooses by logits and takes the softmax of two, which is the same. Tokens are sorted by expert, so each expert has one run of rows.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden, experts):
        super().__init__()
        self.router = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, hidden, width) * hidden**-0.5)

    def forward(self, x):
        logits, chosen = self.router(x).topk(2, dim=-1)
        share = torch.softmax(logits, dim=-1)
        experts, order = chosen.reshape(-1).sort(stable=True)
        sizes = torch.bincount(experts, minlength=self.up.shape[0]).tolist()
        parts = x.index_select(0, order // 2).split(sizes)
        made = [F.silu(part @ self.up[e]) @ self.down[e] for e, part in enumerate(parts) if part.shape[0]]
        y = torch.cat(made) if made else x.new_zeros(0, x.shape[1])
        y *= share.reshape(-1)[order].unsqueeze(-1)
        return torch.zeros_like(x, memory_format=torch.contiguous_format).index_add_(0, order // 2, y)
