"""
op_type: other
policy: anything-faster
about: The place of each token among those that go to the same expert, and how many each expert gets.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = experts

    def forward(self, chosen):
        one_hot = F.one_hot(chosen, self.experts)
        so_far = one_hot.cumsum(0)
        return (so_far * one_hot).sum(1) - 1, so_far[-1].clone()


def get_inputs():
    return [torch.randint(0, 64, (4096,))]


def get_init_inputs():
    return [64]
