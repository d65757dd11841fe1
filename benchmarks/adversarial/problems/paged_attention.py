"""
op_type: attention
policy: anything-faster
about: One query for each sequence, whose keys and values lie in pages of 16 tokens. A table has the pages of each sequence.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, q, keys, values, table, lengths):
        batch, heads, width = q.shape
        k = keys[table].flatten(1, 2)
        v = values[table].flatten(1, 2)
        scores = torch.einsum("bhd,bthd->bht", q, k) * width**-0.5
        outside = torch.arange(k.shape[1]) >= lengths[:, None]
        scores = scores.masked_fill(outside[:, None], float("-inf"))
        return torch.einsum("bht,bthd->bhd", scores.softmax(-1), v)


def get_inputs():
    pages = torch.randperm(128)[:96].view(8, 12)
    return [
        torch.randn(8, 8, 64),
        torch.randn(128, 16, 8, 64),
        torch.randn(128, 16, 8, 64),
        pages,
        torch.randint(1, 193, (8,)),
    ]


def get_init_inputs():
    return []
