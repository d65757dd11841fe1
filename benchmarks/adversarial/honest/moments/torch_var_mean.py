"""
problem: moments
policy: anything-faster
style: var_mean
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        var, mean = torch.var_mean(x, dim=1, unbiased=False)
        return mean, var
