"""
op_type: other
policy: anything-faster
about: Clips each row to its own percentiles 2 and 98.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        low, high = torch.quantile(x, torch.tensor([0.02, 0.98]), dim=1, keepdim=True)
        return torch.clamp(x, low, high)


def get_inputs():
    return [torch.randn(128, 1500)]


def get_init_inputs():
    return []
