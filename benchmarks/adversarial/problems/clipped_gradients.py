"""
op_type: reduction
policy: anything-faster
about: Gradients of three layers, scaled so that their common norm is at most 1, as new tensors.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, largest):
        super().__init__()
        self.largest = largest

    def forward(self, a, b, c):
        norm = torch.sqrt(a.square().sum() + b.square().sum() + c.square().sum())
        scale = torch.clamp(self.largest / (norm + 1e-6), max=1.0)
        return a * scale, b * scale, c * scale


def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 1024), torch.randn(1024, 256)]


def get_init_inputs():
    return [1.0]
