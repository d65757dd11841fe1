"""
op_type: moe
policy: anything-faster
about: A mixture of eight experts, each of which chooses a quarter of the tokens by itself (expert choice routing). A token that nobody chose is zero.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width, inner, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, inner) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, inner, width) * inner**-0.5)

    def forward(self, x):
        shares, chosen = self.gate(x).softmax(-1).t().topk(len(x) // 4)
        out = torch.zeros_like(x)
        for e in range(len(self.up)):
            y = F.silu(x[chosen[e]] @ self.up[e]) @ self.down[e]
            out.index_add_(0, chosen[e], y * shares[e][:, None])
        return out


def get_inputs():
    return [torch.randn(1024, 128)]


def get_init_inputs():
    return [128, 192, 8]
