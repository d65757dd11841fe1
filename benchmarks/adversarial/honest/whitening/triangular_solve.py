"""
problem: whitening
style: A triangular solve from the right instead of an inverse, into the memory of the centred features.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        centred = x - x.mean(0)
        covariance = (centred.t() @ centred).div_(len(x))
        covariance.diagonal().add_(0.01)
        factor = torch.linalg.cholesky(covariance)
        return torch.linalg.solve_triangular(factor.t(), centred, upper=True, left=False)
