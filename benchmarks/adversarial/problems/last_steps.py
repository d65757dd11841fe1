"""
op_type: reduction
policy: anything-faster
about: Mean of the last 128 steps of each sequence, or of all steps of a shorter one. All sequences of a draw have at least 256.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x, lengths):
        step, end = torch.arange(x.shape[1]), lengths.unsqueeze(1)
        kept = (step < end) & (step >= end - self.steps)
        total = x.masked_fill(~kept.unsqueeze(2), 0).sum(1)
        return total / kept.sum(1, keepdim=True).clamp(min=1)


def get_inputs():
    return [torch.randn(64, 1024, 32), torch.randint(256, 1025, (64,))]


def get_init_inputs():
    return [128]
