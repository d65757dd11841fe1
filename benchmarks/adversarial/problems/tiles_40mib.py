"""
op_type: memory
policy: anything-faster
about: One block 40 times, 40 MiB out, which a C library maps anew for each answer.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.repeat(40, 1)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
