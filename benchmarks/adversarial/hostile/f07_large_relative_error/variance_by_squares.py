"""
problem: moments
family: 7
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: E[x^2] - E[x]^2 cancels as soon as the mean is large; inputs around zero hide it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        m = x.mean(dim=1)
        return m, (x * x).mean(dim=1) - m * m
