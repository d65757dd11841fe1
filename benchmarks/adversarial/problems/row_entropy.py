"""
op_type: reduction
policy: anything-faster
about: Entropy of the softmax of each row, for 1000 classes.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, logits):
        logp = torch.log_softmax(logits, dim=-1)
        return -(logp.exp() * logp).sum(-1)


def get_inputs():
    return [torch.randn(2048, 1000)]


def get_init_inputs():
    return []
