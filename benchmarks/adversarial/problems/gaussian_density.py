"""
op_type: linear_algebra
policy: anything-faster
about: The logarithm of a normal density with a learned mean and a learned triangular factor of the covariance. Its diagonal is positive by exp.
"""

import math

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(width))
        self.lower = torch.nn.Parameter(torch.randn(width, width) / width)
        self.log_diagonal = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        factor = self.lower.tril(-1) + torch.diag(self.log_diagonal.exp())
        white = torch.linalg.solve_triangular(factor, (x - self.mean).t(), upper=False)
        constant = 0.5 * x.shape[1] * math.log(2 * math.pi) + self.log_diagonal.sum()
        return -0.5 * white.square().sum(0) - constant


def get_inputs():
    return [torch.randn(2048, 48)]


def get_init_inputs():
    return [48]
