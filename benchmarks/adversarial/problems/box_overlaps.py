"""
op_type: other
policy: anything-faster
about: Generalised intersection over union of all pairs of boxes, as for matching in DETR.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
        area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
        extent = (high - low).clamp(min=0)
        common = extent[..., 0] * extent[..., 1]
        union = area_a[:, None] + area_b - common
        low, high = torch.min(a[:, None, :2], b[:, :2]), torch.max(a[:, None, 2:], b[:, 2:])
        extent = (high - low).clamp(min=0)
        hull = extent[..., 0] * extent[..., 1]
        return common / union - (hull - union) / hull


def boxes(n):
    corner = torch.rand(n, 2)
    return torch.cat([corner, corner + 0.05 + 0.5 * torch.rand(n, 2)], 1)


def get_inputs():
    return [boxes(600), boxes(400)]


def get_init_inputs():
    return []
