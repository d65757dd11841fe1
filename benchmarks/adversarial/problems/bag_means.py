"""
op_type: embedding
policy: anything-faster
about: Means of the embeddings of bags of tokens. Token 0 is padding, which counts for nothing; a bag without tokens is zero.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(tokens, width, mode="mean", padding_idx=0)

    def forward(self, ids, offsets):
        return self.bag(ids, offsets)


def get_inputs():
    inner = torch.randint(0, 4097, (255,)).sort().values
    return [torch.randint(0, 1000, (4096,)), torch.cat([torch.tensor([0]), inner])]


def get_init_inputs():
    return [1000, 64]
