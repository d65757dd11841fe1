"""
problem: expert_choice
style: All experts' tokens are gathered for two batched products, scaled in place and added up by one index_add_.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, inner, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, inner) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, inner, width) * inner**-0.5)

    @torch.no_grad()
    def forward(self, x):
        shares, chosen = self.gate(x).softmax(-1).t().topk(len(x) // 4)
        hidden = F.silu(torch.bmm(x[chosen], self.up), inplace=True)
        y = torch.bmm(hidden, self.down).mul_(shares[..., None])
        return torch.zeros_like(x).index_add_(0, chosen.flatten(), y.flatten(0, 1))
