"""
op_type: moe
policy: anything-faster
about: A mixture of eight experts with two for each token, as in Mixtral. The two probabilities are divided by their sum.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width, hidden, experts):
        super().__init__()
        self.router = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, hidden, width) * hidden**-0.5)

    def forward(self, x):
        share, chosen = torch.softmax(self.router(x), dim=-1).topk(2, dim=-1)
        share = share / share.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e in range(self.up.shape[0]):
            rows, place = (chosen == e).nonzero(as_tuple=True)
            y = F.silu(x[rows] @ self.up[e]) @ self.down[e]
            out.index_add_(0, rows, y * share[rows, place].unsqueeze(-1))
        return out


def get_inputs():
    return [torch.randn(384, 128)]


def get_init_inputs():
    return [128, 256, 8]
