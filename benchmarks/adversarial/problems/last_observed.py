"""
op_type: scan
policy: anything-faster
about: Carries the last observed value forward, zero before the first one, as models of irregular series do (GRU-D).
"""

import torch


class Model(torch.nn.Module):
    def forward(self, values, observed):
        steps = torch.arange(values.shape[1])
        last = torch.where(observed, steps, -1).cummax(1).values
        filled = values.gather(1, last.clamp(min=0))
        return torch.where(last >= 0, filled, 0.0)


def get_inputs():
    return [torch.randn(2, 131072), torch.rand(2, 131072) < 0.6]


def get_init_inputs():
    return []
