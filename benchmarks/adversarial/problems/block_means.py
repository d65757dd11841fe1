"""
op_type: reduction
policy: anything-faster
about: Compressed keys of block-sparse attention, the mean of every 16 steps; the last block may be shorter.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, keys):
        steps = keys.shape[1]
        blocks = torch.arange(steps) // 16
        number = -(-steps // 16)
        sums = torch.zeros(keys.shape[0], number, keys.shape[2]).index_add_(1, blocks, keys)
        return sums / torch.bincount(blocks, minlength=number)[:, None]


def get_inputs():
    return [torch.randn(16, 2048, 64)]


def get_init_inputs():
    return []
