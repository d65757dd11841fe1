"""
op_type: scatter
policy: anything-faster
about: Mean, largest, smallest and deviation of the messages that each node gets, as in principal neighbourhood aggregation. Nodes without messages get zeros.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, messages, targets):
        at = targets[:, None].expand_as(messages)
        zeros = messages.new_zeros(600, messages.shape[1])
        mean = zeros.scatter_reduce(0, at, messages, "mean", include_self=False)
        largest = zeros.scatter_reduce(0, at, messages, "amax", include_self=False)
        smallest = zeros.scatter_reduce(0, at, messages, "amin", include_self=False)
        apart = (messages - mean[targets]).square()
        deviation = zeros.scatter_reduce(0, at, apart, "mean", include_self=False).sqrt()
        return torch.cat([mean, largest, smallest, deviation], 1)


def get_inputs():
    return [torch.randn(6000, 32), torch.randint(0, 600, (6000,))]


def get_init_inputs():
    return []
