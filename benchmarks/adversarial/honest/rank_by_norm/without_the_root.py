"""
problem: rank_by_norm
style: Squares have the same order as lengths, so no root is taken.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, tokens):
        return tokens.square().sum(-1).argsort(dim=-1, descending=True)
