"""
op_type: other
policy: anything-faster
about: How deep each pixel lies in its object, in steps of a king at chess, at most 64. Beyond the border there is no background.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, mask):
        inside = mask.float()[None, None]
        depth = torch.zeros_like(inside)
        for _ in range(64):
            depth += inside
            inside = -torch.nn.functional.max_pool2d(-inside, 3, 1, 1)
        return depth[0, 0]


def get_inputs():
    return [torch.rand(128, 160) < 0.6]


def get_init_inputs():
    return []
