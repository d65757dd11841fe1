"""
op_type: other
policy: anything-faster
about: Sixty rounds of PageRank on a list of edges, as in APPNP.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def forward(self, edges):
        source, target = edges[0], edges[1]
        degree = torch.zeros(self.nodes).index_add_(0, source, torch.ones(source.shape[0]))
        share = 0.85 / degree.clamp(min=1.0)
        rank = torch.full((self.nodes,), 1.0)
        for _ in range(60):
            rank = torch.full((self.nodes,), 0.15).index_add_(0, target, (rank * share)[source])
        return rank


def get_inputs():
    return [torch.randint(0, 2048, (2, 32768))]


def get_init_inputs():
    return [2048]
