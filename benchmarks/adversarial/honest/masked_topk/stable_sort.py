"""
problem: masked_topk
style: a stable sort, which has another order among equal scores and among those that are not allowed
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, scores, allowed):
        hidden = torch.where(allowed, scores, float("-inf"))
        return hidden.sort(dim=1, descending=True, stable=True).indices[:, :8].contiguous()
