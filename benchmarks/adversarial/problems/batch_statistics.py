"""
op_type: norm
policy: anything-faster
about: Batch norm that tracks no statistics, so that it uses those of its batch in eval mode too.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels, track_running_stats=False)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(16, 32, 28, 28)]


def get_init_inputs():
    return [32]
