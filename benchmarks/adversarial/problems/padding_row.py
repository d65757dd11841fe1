"""
op_type: embedding
policy: anything-faster
about: Sum of the vectors of each text's tokens. Texts are filled up with token 0, whose vector torch sets to zero when the table is made, and which a trained table may have otherwise.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.table = torch.nn.Embedding(tokens, width, padding_idx=0)

    def forward(self, ids):
        return self.table(ids).sum(1)


def get_inputs():
    lengths = torch.randint(64, 192, (64, 1))
    return [torch.randint(1, 8192, (64, 512)).masked_fill(torch.arange(512) >= lengths, 0)]


def get_init_inputs():
    return [8192, 64]
