"""
op_type: embedding
policy: anything-faster
about: Sums of the vectors of each bag's tokens. Few tokens are frequent, as in any text, so their number in a row is not that of even chance.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(tokens, width, mode="sum")

    def forward(self, ids):
        return self.bag(ids)


def get_inputs():
    return [(30000 * torch.rand(64, 4096) ** 16).long()]


def get_init_inputs():
    return [30000, 128]
