"""
problem: ignored_tokens
style: Takes the rows that count first, so that nothing is computed for the others. The mean of none is NaN, as the reference's.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, labels):
        counted = (labels != -1).nonzero().squeeze(1)
        rows = logits.index_select(0, counted)
        if not rows.shape[0]:
            return rows.new_full((), float("nan"))
        rows = rows - rows.amax(1, keepdim=True)
        own = rows.gather(1, labels[counted].unsqueeze(1)).squeeze(1)
        return rows.exp_().sum(1).log_().sub_(own).mean()
