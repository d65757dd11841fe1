"""
problem: chirp
style: the same wave with operations in place
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, number):
        t = torch.arange(x.shape[-1], dtype=torch.float64)
        wave = torch.cos_(t.sqrt().mul_(number).mul_(1e-3))
        return x * wave.mul_(t.mul_(number).mul_(1e-6).sin_()).float()
