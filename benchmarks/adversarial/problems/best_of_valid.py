"""
op_type: other
policy: anything-faster
about: The places of the eight best scores of each row, where NaN means that a score is missing. Rows that lack most scores get -1.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores):
        missing = scores.isnan()
        mostly = missing.to(torch.uint8).median(dim=1, keepdim=True).values.bool()
        best = scores.masked_fill(missing, float("-inf")).topk(8, dim=1).indices
        return best.masked_fill(mostly, -1)


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return []
