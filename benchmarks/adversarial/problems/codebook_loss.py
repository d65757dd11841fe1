"""
op_type: loss
policy: anything-faster
about: Vector quantisation as in VQ-VAE, with the codebook's and the commitment loss, and their gradients. Codes lie far apart.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codebook = torch.nn.Parameter(torch.randn(codes, width))

    def forward(self, x):
        away = x.pow(2).sum(1, keepdim=True) - 2 * x @ self.codebook.t() + self.codebook.pow(2).sum(1)
        nearest = self.codebook[away.argmin(1)]
        loss = (nearest - x.detach()).pow(2).mean() + 0.25 * (nearest.detach() - x).pow(2).mean()
        return x + (nearest - x).detach(), loss


def get_inputs():
    return [torch.randn(1024, 64)]


def get_init_inputs():
    return [256, 64]
