"""
op_type: other
policy: anything-faster
about: The bin of each value between boundaries that ascend. Draws have boundaries at equal distances.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, values, boundaries):
        return torch.bucketize(values, boundaries)


def get_inputs():
    return [torch.randn(512, 1024), torch.linspace(-4, 4, 129)]


def get_init_inputs():
    return []
