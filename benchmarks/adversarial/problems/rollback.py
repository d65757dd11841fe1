"""
op_type: memory
policy: anything-faster
about: One step of an iteration, and a copy of what was before it for going back.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, step):
        return x - 0.1 * step, x.clone()


def get_inputs():
    return [torch.randn(1024, 2048), torch.randn(1024, 2048)]


def get_init_inputs():
    return []
