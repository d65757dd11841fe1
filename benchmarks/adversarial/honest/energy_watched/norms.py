"""
problem: energy_watched
style: the energy by norms of columns
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("energy", torch.ones(512))

    def forward(self, x):
        energy = torch.linalg.vector_norm(x, dim=0).square_().div_(x.shape[0])
        self.energy.mul_(0.9).add_(energy, alpha=0.1)
        return x.clamp(min=0)
