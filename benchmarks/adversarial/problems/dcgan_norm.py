"""
op_type: norm
policy: anything-faster
about: Batch norm in eval mode with DCGAN's initial weights (normal around 1), leaky ReLU, then a maximum over windows.
"""

import torch


def initialise(module):
    if isinstance(module, torch.nn.BatchNorm2d):
        torch.nn.init.normal_(module.weight.data, 1.0, 0.02)
        torch.nn.init.constant_(module.bias.data, 0)


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)
        self.act = torch.nn.LeakyReLU(0.2)
        self.pool = torch.nn.MaxPool2d(4)
        self.apply(initialise)

    def forward(self, x):
        return self.pool(self.act(self.norm(x)))


def get_inputs():
    return [torch.randn(8, 32, 96, 96)]


def get_init_inputs():
    return [32]
