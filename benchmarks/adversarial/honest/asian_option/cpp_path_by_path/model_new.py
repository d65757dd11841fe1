"""
problem: asian_option
style: Each path in one loop over time, 16 paths at once, without arrays for paths. torch takes mean and deviation of payoffs.
"""

import math

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, normals, spot, strike, rate=0.03, volatility=0.2):
        paths, steps = normals.shape
        if spot.dim() or strike.dim() or steps == 0:
            raise ValueError("one spot and one strike are expected")
        normals, means = normals.contiguous(), torch.empty(paths)
        drift, spread = (rate - volatility**2 / 2) / steps, volatility / math.sqrt(steps)
        lib.means(normals, means, paths, steps, drift, spread)
        payoff = means.mul_(spot).sub_(strike).clamp_(min=0).mul_(math.exp(-rate))
        return {"price": payoff.mean(), "error": payoff.std() / math.sqrt(paths)}
