"""
problem: named_moments
style: Moments of both groups, merged by the formula of Chan and others with means in double precision, without a copy of the measurements.
"""

from typing import NamedTuple

import torch


class Moments(NamedTuple):
    count: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor


class ModelNew(torch.nn.Module):
    def forward(self, first, second):
        a, b = first.shape[0], second.shape[0]
        n = a + b
        if first.shape[1:] != second.shape[1:]:
            raise ValueError("two groups of the same measurements are expected")
        if a == 0 or b == 0:
            whole = first if b == 0 else second
            return Moments(torch.tensor(n), whole.mean(0), whole.var(0, unbiased=False))
        # Means of torch.var_mean are NaN for infinite measurements.
        ma, mb = first.mean(0, dtype=torch.float64), second.mean(0, dtype=torch.float64)
        va, vb = first.var(0, unbiased=False), second.var(0, unbiased=False)
        apart = mb - ma
        mean = (ma * a + mb * b) / n
        variance = (va * a + vb * b) / n + apart * apart * (a / n) * (b / n)
        return Moments(torch.tensor(n), mean.to(first.dtype), variance.to(first.dtype))
