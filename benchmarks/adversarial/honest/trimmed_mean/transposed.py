"""
problem: trimmed_mean
style: Sorts a transposed copy, where the numbers of a coordinate lie side by side, into memory of its own by out=.
"""

import torch


class ModelNew(torch.nn.Module):
    @torch.no_grad()
    def forward(self, updates):
        rows = updates.flatten(1).t().contiguous() if updates.dim() > 1 else updates[None]
        values, places = torch.empty_like(rows), torch.empty(rows.shape, dtype=torch.int64)
        torch.sort(rows, dim=1, out=(values, places))
        return values[:, 3:-3].mean(1).view(updates.shape[1:])
