"""
op_type: model
policy: anything-faster
about: A deep and narrow network for few samples, as a controller runs it. A layer takes less time than its call.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


def get_inputs():
    return [torch.randn(2, 24)]


def get_init_inputs():
    return [24, 96]
