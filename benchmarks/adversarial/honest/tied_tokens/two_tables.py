"""
problem: tied_tokens
style: Two tables in memory, both loaded from the state dict, so that the one of the head can be stored transposed.
"""

import torch


class Table(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width, tokens).t())


class ModelNew(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.embed = torch.nn.Embedding(tokens, width)
        self.norm = torch.nn.LayerNorm(width)
        self.head = Table(tokens, width)
        with torch.no_grad():
            self.head.weight.copy_(self.embed.weight)

    def forward(self, ids):
        return torch.matmul(self.norm(self.embed(ids)), self.head.weight.t())
