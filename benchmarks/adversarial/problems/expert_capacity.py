"""
op_type: other
policy: anything-faster
about: Top-2 gates and experts of a mixture of experts. An expert takes its first 1024 tokens only; gates of dropped choices are zero and the others are normalised again.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity

    def forward(self, logits):
        best, experts = logits.topk(2, 1)
        chosen = torch.nn.functional.one_hot(experts, logits.shape[1])  # tokens, choices, experts
        order = chosen.transpose(0, 1).reshape(-1, logits.shape[1])  # first choices go first
        place = ((order.cumsum(0) - 1) * order).sum(1).view(2, -1).T
        gates = best.softmax(1) * (place < self.capacity)
        return gates / gates.sum(1, keepdim=True).clamp(min=1e-9), experts


def get_inputs():
    return [torch.randn(4096, 16)]


def get_init_inputs():
    return [1024]
