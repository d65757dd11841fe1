"""
problem: relative_bias
style: The table has one row for each head, made again if the parameter changes, so that the bias is written in the order of the scores.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, heads, most):
        super().__init__()
        self.most = most
        self.table = torch.nn.Embedding(2 * most + 1, heads)
        self._by_head, self._version = None, None

    def forward(self, scores, positions):
        weight = self.table.weight
        if self._version != weight._version:
            self._by_head, self._version = weight.detach().t().contiguous(), weight._version
        near = positions.unsqueeze(1) - positions.unsqueeze(2)
        near = near.clamp_(-self.most, self.most).add_(self.most)
        bias = self._by_head.index_select(1, near.reshape(-1))
        b, n, _ = near.shape
        return scores + bias.view(bias.shape[0], b, n, n).transpose(0, 1)
