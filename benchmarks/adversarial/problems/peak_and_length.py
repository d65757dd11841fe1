"""
op_type: reduction
policy: anything-faster
about: The largest sample and the Euclidean length of each of 400 long signals, 100 MB in all.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.amax(1), torch.linalg.vector_norm(x, dim=1)


def get_inputs():
    return [torch.randn(400, 65_536)]


def get_init_inputs():
    return []
