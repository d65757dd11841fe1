"""
op_type: other
policy: anything-faster
about: Packs 32 bools to a number, the first one lowest. What is missing in the last word is false.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, flags):
        padded = F.pad(flags, (0, -flags.shape[1] % 32))
        words = padded.view(flags.shape[0], -1, 32).long()
        return (words << torch.arange(32)).sum(-1)


def get_inputs():
    return [torch.rand(256, 2000) < 0.5]


def get_init_inputs():
    return []
