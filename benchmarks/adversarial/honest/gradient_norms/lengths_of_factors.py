"""
problem: gradient_norms
style: A linear layer's gradient for one sample is an outer product, so its length is that of its factors' product. No gradient is ever made. Lengths are in double, whose range their product needs.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, hidden, outer):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(inner, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outer))

    @torch.no_grad()
    def forward(self, x, y):
        h = torch.tanh(self.net[0](x))
        apart = self.net[2](h) - y
        back = (apart @ self.net[2].weight) * (1 - h * h)
        x2, h2, apart2, back2 = (t.double().square_().sum(1) for t in (x, h, apart, back))
        return (apart2 * (h2 + 1) + back2 * (x2 + 1)).sqrt().to(x.dtype)
