"""
op_type: reduction
policy: anything-faster
about: Mean of the token vectors of each sentence that a mask keeps, as in sentence transformers. Each draw has its padding at the end. What is masked may be anything.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, tokens, mask):
        kept = tokens.masked_fill(~mask.unsqueeze(-1), 0.0)
        return kept.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def get_inputs():
    return [torch.randn(96, 128, 256), torch.arange(128) < torch.randint(4, 129, (96, 1))]


def get_init_inputs():
    return []
