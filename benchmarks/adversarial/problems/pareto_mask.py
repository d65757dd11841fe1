"""
op_type: other
policy: anything-faster
about: Which candidates no other one dominates, that is none is at most as costly in every respect and cheaper in one.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, costs):
        other, own = costs[None], costs[:, None]
        dominated = (other <= own).all(-1) & (other < own).any(-1)
        return ~dominated.any(1)


def get_inputs():
    return [torch.randn(768, 3)]


def get_init_inputs():
    return []
