"""
op_type: indexing
policy: anything-faster
about: Sums of the features of each graph's nodes in bfloat16, after a ReLU. About a thousand nodes in each of 16 graphs.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, nodes, graph):
        pooled = torch.zeros(16, nodes.shape[1], dtype=nodes.dtype)
        return pooled.index_add_(0, graph, torch.relu(nodes))


def get_inputs():
    return [torch.randn(16384, 32).to(torch.bfloat16), torch.randint(0, 16, (16384,))]


def get_init_inputs():
    return []
