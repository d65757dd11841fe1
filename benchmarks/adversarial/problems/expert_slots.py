"""
op_type: moe
policy: anything-faster
about: The slot of each token in the queue of its expert, in the order of tokens, whether it fits into the capacity, and the load of each expert.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, experts, capacity):
        super().__init__()
        self.experts, self.capacity = experts, capacity

    def forward(self, chosen):
        hot = F.one_hot(chosen, self.experts)
        slots = (hot.cumsum(0) * hot).sum(-1) - 1
        return slots, slots < self.capacity, hot.sum(0)


def get_inputs():
    return [torch.randint(0, 32, (8192,))]


def get_init_inputs():
    return [32, 260]
