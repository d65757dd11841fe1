"""
op_type: model
policy: anything-faster
about: Two layers of a Kolmogorov-Arnold network with Chebyshev polynomials up to degree 5.
"""

import torch


class Layer(torch.nn.Module):
    def __init__(self, inner, outer, degree):
        super().__init__()
        self.degree = degree
        self.coefficients = torch.nn.Parameter(torch.randn(inner, outer, degree + 1) / (inner * (degree + 1)) ** 0.5)

    def forward(self, x):
        x = torch.tanh(x)
        terms = [torch.ones_like(x), x]
        for _ in range(2, self.degree + 1):
            terms.append(2 * x * terms[-1] - terms[-2])
        return torch.einsum("bid,iod->bo", torch.stack(terms, -1), self.coefficients)


class Model(torch.nn.Module):
    def __init__(self, inner, hidden, outer, degree):
        super().__init__()
        self.layers = torch.nn.Sequential(Layer(inner, hidden, degree), Layer(hidden, outer, degree))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(512, 64)]


def get_init_inputs():
    return [64, 96, 32, 5]
