"""
op_type: sparse
policy: anything-faster
about: A layer of GraphSAGE, each node's own features and the mean of those that point to it. Draws have the graph of a grid.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, outer):
        super().__init__()
        self.own = torch.nn.Linear(width, outer)
        self.other = torch.nn.Linear(width, outer, bias=False)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        total = torch.zeros_like(x).index_add_(0, target, x[source])
        degree = torch.zeros(x.shape[0]).index_add_(0, target, torch.ones(target.shape[0]))
        return torch.relu(self.own(x) + self.other(total / degree.clamp(min=1)[:, None]))


def get_inputs():
    node = torch.arange(48 * 48).view(48, 48)
    across = torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()])
    down = torch.stack([node[:-1].flatten(), node[1:].flatten()])
    edges = torch.cat([across, down], 1)
    return [torch.randn(48 * 48, 64), torch.cat([edges, edges.flip(0)], 1)]


def get_init_inputs():
    return [64, 64]
