"""
problem: list_of_sequences
style: Sequences are joined for one product and split afterwards, so that the answers are parts of one tensor.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.up = torch.nn.Linear(inner, outer)
        self.norm = torch.nn.LayerNorm(outer)

    def forward(self, sequences):
        if not sequences:
            return []
        if any(s.dim() != 2 for s in sequences):
            raise ValueError("sequences of vectors are expected")
        joined = self.norm(self.up(torch.cat(list(sequences))).relu_())
        return list(joined.split([len(s) for s in sequences]))
