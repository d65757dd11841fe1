"""
op_type: reduction
policy: anything-faster
about: Mean of the nodes of each graph of a batch, zero for a graph without nodes. Nodes come graph by graph, and each graph of a draw has some.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, graphs):
        super().__init__()
        self.graphs = graphs

    def forward(self, x, graph):
        sums = x.new_zeros(self.graphs, x.shape[1]).index_add_(0, graph, x)
        return sums / torch.bincount(graph, minlength=self.graphs).clamp(min=1).unsqueeze(1)


def get_inputs():
    some = torch.randint(0, 256, (16384 - 256,))
    return [torch.randn(16384, 64), torch.cat([torch.arange(256), some]).sort().values]


def get_init_inputs():
    return [256]
