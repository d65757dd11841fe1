"""
op_type: indexing
policy: anything-faster
about: Adds rows of messages to the nodes that they go to.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, nodes, messages, target):
        return nodes.index_add(0, target, messages)


def get_inputs():
    return [torch.randn(256, 64), torch.randn(4096, 64), torch.randint(0, 256, (4096,))]


def get_init_inputs():
    return []
