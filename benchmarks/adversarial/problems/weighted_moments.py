"""
op_type: reduction
policy: anything-faster
about: Mean and variance of each row by weights of any sum, as of numpy's average. Draws have weights from a softmax.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, values, weights):
        weights = weights / weights.sum(1, keepdim=True)
        mean = (weights * values).sum(1, keepdim=True)
        return mean[:, 0], (weights * (values - mean) ** 2).sum(1)


def get_inputs():
    return [torch.randn(1024, 1024), torch.randn(1024, 1024).softmax(1)]


def get_init_inputs():
    return []
