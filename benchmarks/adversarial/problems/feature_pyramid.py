"""
op_type: other
policy: anything-faster
about: A step of a feature pyramid. Coarse features are resized to the size of the finer ones, whatever it is, and added. In draws it is exactly twice theirs.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, coarse, fine):
        resized = F.interpolate(coarse, size=fine.shape[-2:], mode="bilinear", align_corners=False)
        return resized + fine


def get_inputs():
    return [torch.randn(2, 64, 40, 40), torch.randn(2, 64, 80, 80)]


def get_init_inputs():
    return []
