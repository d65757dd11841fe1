"""
op_type: indexing
policy: anything-faster
about: The least node of each node's connected part in an undirected graph.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def forward(self, edges):
        labels = torch.arange(self.nodes)
        one, other = torch.cat([edges[0], edges[1]]), torch.cat([edges[1], edges[0]])
        while True:
            new = labels.scatter_reduce(0, other, labels[one], "amin")
            if torch.equal(new, labels):
                return labels
            labels = new


def get_inputs():
    return [torch.randint(0, 8192, (2, 20000))]


def get_init_inputs():
    return [8192]
