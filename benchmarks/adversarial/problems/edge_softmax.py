"""
op_type: softmax
policy: anything-faster
about: Softmax over the edges that end in the same node, as in graph attention. Some nodes have no edge.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, scores, ends):
        nodes, heads = 1024, scores.shape[1]
        most = torch.full((nodes, heads), -torch.inf, dtype=scores.dtype)
        most = most.scatter_reduce(0, ends[:, None].expand_as(scores), scores, "amax")
        e = torch.exp(scores - most[ends])
        total = torch.zeros_like(most).index_add_(0, ends, e)
        return e / total[ends]


def get_inputs():
    return [torch.randn(6144, 4), torch.randint(0, 1024, (6144,))]


def get_init_inputs():
    return []
