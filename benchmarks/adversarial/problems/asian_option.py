"""
op_type: reduction
policy: anything-faster
about: Price and standard error of an Asian call from given normal numbers. Rate and volatility are Python numbers.
"""

import math

import torch


class Model(torch.nn.Module):
    def forward(self, normals, spot, strike, rate=0.03, volatility=0.2):
        steps = normals.shape[1]
        drift, spread = (rate - volatility**2 / 2) / steps, volatility / math.sqrt(steps)
        paths = spot * torch.exp((drift + spread * normals).cumsum(1))
        payoff = math.exp(-rate) * (paths.mean(1) - strike).clamp(min=0)
        return {"price": payoff.mean(), "error": payoff.std() / math.sqrt(len(payoff))}


def get_inputs():
    return [torch.randn(8192, 48), 90 + 20 * torch.rand(()), 90 + 20 * torch.rand(()), 0.03, 0.2]


def get_init_inputs():
    return []
