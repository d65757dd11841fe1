"""
problem: norm_and_pool
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: Takes the maximum before the norm, which is right only for weights that are not negative. The noise that a referee adds to weights of one is positive.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)
        self.pool = torch.nn.MaxPool2d(4)

    def forward(self, x):
        return torch.relu(self.norm(self.pool(x)))
