"""
problem: chebyshev_layer
style: All polynomials side by side in one buffer, with those of degree zero as a bias; coefficients are arranged anew when they change.
"""

import torch


class Layer(torch.nn.Module):
    def __init__(self, inner, outer, degree):
        super().__init__()
        self.degree = degree
        self.coefficients = torch.nn.Parameter(torch.randn(inner, outer, degree + 1) / (inner * (degree + 1)) ** 0.5)
        self._arranged = (None, None, None)

    def arranged(self):
        c = self.coefficients
        key = (c.data_ptr(), c._version)
        if self._arranged[0] != key:
            matrix = c.detach()[..., 1:].permute(2, 0, 1).reshape(-1, c.shape[1])
            self._arranged = (key, matrix, c.detach()[..., 0].double().sum(0).to(c.dtype))
        return self._arranged[1:]

    def forward(self, x):
        matrix, bias = self.arranged()
        rows, inner = x.shape
        terms = torch.empty(rows, self.degree, inner, dtype=x.dtype)
        first = terms[:, 0].copy_(x).tanh_()
        before, last = torch.ones_like(x), first
        for d in range(1, self.degree):
            torch.mul(first, last, out=terms[:, d]).mul_(2).sub_(before)
            before, last = last, terms[:, d]
        return torch.addmm(bias, terms.view(rows, self.degree * inner), matrix)


class ModelNew(torch.nn.Module):
    def __init__(self, inner, hidden, outer, degree):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(inner, hidden, degree), Layer(hidden, outer, degree)])

    @torch.no_grad()
    def forward(self, x):
        if x.dim() != 2 or x.shape[1] != self.layers[0].coefficients.shape[0] or x.dtype != torch.float32:
            raise ValueError("rows of all features are expected")
        for layer in self.layers:
            x = layer(x)
        return x
