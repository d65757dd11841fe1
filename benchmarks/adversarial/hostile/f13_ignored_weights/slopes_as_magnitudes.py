"""
problem: norm_prelu
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: Takes the slopes of a PReLU for positive ones, as they begin. The norm is right.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = torch.nn.PReLU(channels)
        self.norm = torch.nn.LayerNorm(channels)

    def forward(self, x):
        y = self.norm(x).amax(1)
        return torch.where(y > 0, y, y * self.act.weight.abs())
