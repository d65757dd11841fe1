"""
problem: norm_and_largest
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: Takes the largest value before the norm, which is right only for weights that are not negative. The noise that a referee adds to weights of one is positive.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        y = (x.amax((2, 3)) - n.running_mean) * (n.running_var + n.eps).rsqrt()
        return torch.nn.functional.softplus(torch.addcmul(n.bias, y, n.weight))
