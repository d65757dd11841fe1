"""
op_type: other
policy: anything-faster
about: Lengths of shortest paths between all pairs of nodes, by repeated squaring; costs of edges come as raw scores.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores):
        cost = torch.nn.functional.softplus(scores)
        cost = cost.masked_fill(torch.eye(cost.shape[0], dtype=torch.bool), 0.0)
        hops = 1
        while hops < cost.shape[0] - 1:
            cost = (cost[:, :, None] + cost[None]).amin(1)
            hops *= 2
        return cost


def get_inputs():
    return [torch.randn(112, 112)]


def get_init_inputs():
    return []
