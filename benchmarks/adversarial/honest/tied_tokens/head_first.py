"""
problem: tied_tokens
style: The head owns the table and the embedding shares it, so the state dict has its names in another order.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.head = torch.nn.Linear(width, tokens, bias=False)
        self.norm = torch.nn.LayerNorm(width)
        self.embed = torch.nn.Embedding(tokens, width)
        self.embed.weight = self.head.weight

    def forward(self, ids):
        table, norm = self.head.weight, self.norm
        rows = F.layer_norm(table[ids.reshape(-1)], norm.normalized_shape, norm.weight, norm.bias, norm.eps)
        return (rows @ table.t()).view(*ids.shape, -1)
