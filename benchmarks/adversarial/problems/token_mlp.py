"""
op_type: embedding
policy: anything-faster
about: Token embeddings with a residual block of their own before any attention, as in models that enrich their tokens.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, tokens, width, hidden):
        super().__init__()
        self.embed = torch.nn.Embedding(tokens, width)
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, ids):
        x = self.embed(ids)
        return x + self.down(F.gelu(self.up(self.norm(x))))


def get_inputs():
    return [torch.randint(0, 1000, (8, 128))]


def get_init_inputs():
    return [1000, 128, 512]
