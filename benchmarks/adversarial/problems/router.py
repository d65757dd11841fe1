"""
op_type: other
policy: anything-faster
about: Router of a mixture of experts: the two most probable experts of each token, with their weights.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)

    def forward(self, x):
        weights, experts = self.gate(x).softmax(-1).topk(2, dim=-1)
        return weights / weights.sum(-1, keepdim=True), experts


def get_inputs():
    return [torch.randn(4096, 64)]


def get_init_inputs():
    return [64, 32]
