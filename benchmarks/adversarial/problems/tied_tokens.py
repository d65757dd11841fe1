"""
op_type: gemm_epilogue
policy: anything-faster
about: Token embedding, a layer norm, and logits by the same table, as in GPT-2. The state dict has the table twice.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.embed = torch.nn.Embedding(tokens, width)
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.norm(self.embed(ids)))


def get_inputs():
    return [torch.randint(0, 2000, (8, 48))]


def get_init_inputs():
    return [2000, 128]
