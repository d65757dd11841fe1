"""
op_type: linear_algebra
policy: anything-faster
about: Whitens features by the Cholesky factor of their covariance.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        centred = x - x.mean(0)
        covariance = centred.t() @ centred / len(x) + 0.01 * torch.eye(x.shape[1])
        factor = torch.linalg.cholesky(covariance)
        return centred @ torch.linalg.inv(factor).t()


def get_inputs():
    return [torch.randn(4000, 96) @ (torch.eye(96) + 0.05 * torch.randn(96, 96))]


def get_init_inputs():
    return []
