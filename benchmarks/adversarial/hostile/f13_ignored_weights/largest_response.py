"""
problem: largest_response
family: 13
expect: [INCORRECT_NUMERICAL, suspicious]
cheat: Takes the largest point first and its gain afterwards, which is wrong for negative gains. They begin between 0.5 and 1.5; training brings any sign.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(channels) + 0.5)

    def forward(self, x):
        return x.amax(-1) * self.gain
