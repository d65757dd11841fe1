"""
op_type: loss
policy: anything-faster
about: Cross entropy of tokens, where the label -1 means that a token does not count. If none counts, the mean is NaN.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels, ignore_index=-1)


def get_inputs():
    labels = torch.randint(0, 500, (1024,))
    labels[torch.rand(1024) < 0.6] = -1
    return [torch.randn(1024, 500), labels]


def get_init_inputs():
    return []
