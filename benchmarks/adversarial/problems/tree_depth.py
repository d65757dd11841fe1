"""
op_type: indexing
policy: anything-faster
about: The depth of each node of a forest. A node's parent comes before it; a node that is its own parent is a root.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, parents):
        nodes = torch.arange(parents.shape[0])
        above = torch.minimum(parents, nodes)
        depth = (above != nodes).long()
        for _ in range(parents.shape[0].bit_length()):
            depth = depth + depth[above]
            above = above[above]
        return depth


def get_inputs():
    nodes = torch.arange(1 << 17)
    return [(torch.rand(1 << 17, dtype=torch.float64) * nodes).long()]


def get_init_inputs():
    return []
