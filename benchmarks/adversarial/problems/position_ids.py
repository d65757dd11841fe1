"""
op_type: scan
policy: anything-faster
about: Positions of the tokens of each sequence that are not padding, as in RoBERTa. Token 1 is padding, whose position is 1.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, ids):
        mask = ids.ne(1).int()
        return (torch.cumsum(mask, dim=1).type_as(mask) * mask).long() + 1


def get_inputs():
    return [torch.randint(0, 4, (128, 1024))]


def get_init_inputs():
    return []
