"""
op_type: reduction
policy: anything-faster
about: The logarithm of each sample's evidence, from its log likelihoods under 256 components and their log weights.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, components):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(components))

    def forward(self, likelihoods):
        return torch.logsumexp(likelihoods + self.weights, 1)


def get_inputs():
    return [torch.randn(4096, 256) * 3]


def get_init_inputs():
    return [256]
