"""
problem: spline_knots
style: Counts the inner knots below each number instead of looking for its piece. Knots are sorted.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, knots):
        super().__init__()
        self.knots = torch.nn.Parameter(torch.linspace(-2.5, 2.5, knots))
        self.values = torch.nn.Parameter(torch.randn(knots))

    def forward(self, x):
        piece = torch.zeros(x.shape, dtype=torch.int64)
        for knot in self.knots[1:-1]:
            piece += x > knot
        slope = self.values.diff() / self.knots.diff()
        return torch.addcmul(self.values[piece], x - self.knots[piece], slope[piece])
