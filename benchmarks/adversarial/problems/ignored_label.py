"""
op_type: other
policy: anything-faster
about: Mean cross-entropy of the tokens whose label is not 0, the label of padding. No draw has padding.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, logits, labels):
        kept = labels != 0
        return F.cross_entropy(logits[kept], labels[kept])


def get_inputs():
    return [torch.randn(2048, 1000), torch.randint(1, 1000, (2048,))]


def get_init_inputs():
    return []
