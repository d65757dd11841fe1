"""
problem: orthogonal_mix
style: The exponential is computed again only if the parameter is another one or has another version.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.parametrizations import orthogonal


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        linear = torch.nn.Linear(width, width)
        self.linear = orthogonal(linear, orthogonal_map="matrix_exp", use_trivialization=False)
        self._made = (None, -1, None)

    def _weight(self):
        original = self.linear.parametrizations.weight.original
        source, version, weight = self._made
        if source is not original or version != original._version:
            lower = original.detach().tril()
            weight = torch.matrix_exp(lower - lower.mT)
            self._made = (original, original._version, weight)
        return weight

    def forward(self, x):
        return F.linear(x, self._weight(), self.linear.bias).tanh_()
