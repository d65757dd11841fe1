"""
problem: sentence_means
style: adds the first tokens of sentences whose padding is at the end, and masks the others.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, tokens, mask):
        lengths = mask.sum(1)
        if mask.shape[1] < 2 or bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            kept = tokens.masked_fill(~mask.unsqueeze(-1), 0.0)
            return kept.sum(1) / lengths.unsqueeze(1).clamp(min=1)
        out = torch.empty(tokens.shape[0], tokens.shape[2], dtype=tokens.dtype)
        for n, length in enumerate(lengths.tolist()):
            torch.sum(tokens[n, :length], 0, out=out[n])
        return out.div_(lengths.unsqueeze(1).clamp(min=1))
