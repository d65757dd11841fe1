"""
problem: upcycled_experts
style: Weights of all experts are stacked in the constructor, and again when a state_dict is loaded.
"""

import copy

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden, experts):
        super().__init__()
        dense = torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, width)
        )
        self.experts = torch.nn.ModuleList(copy.deepcopy(dense) for _ in range(experts))
        self.gate = torch.nn.Linear(width, experts, bias=False)
        self.stack()
        self.register_load_state_dict_post_hook(lambda module, _: module.stack())

    def stack(self):
        self.up = [(e[0].weight.detach().t().contiguous(), e[0].bias.detach()) for e in self.experts]
        self.down = [(e[2].weight.detach().t().contiguous(), e[2].bias.detach()) for e in self.experts]

    def forward(self, x):
        weights, chosen = torch.softmax(self.gate(x), dim=-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, ((w1, b1), (w2, b2)) in enumerate(zip(self.up, self.down)):
            token, place = (chosen == number).nonzero(as_tuple=True)
            answer = torch.addmm(b2, torch.nn.functional.gelu(torch.addmm(b1, x[token], w1)), w2)
            out.index_add_(0, token, answer.mul_(weights[token, place, None]))
        return out
