"""
op_type: other
policy: anything-faster
about: Greedy non-maximum suppression of detections in a large picture. A box that is suppressed suppresses none.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, overlap):
        super().__init__()
        self.overlap = overlap

    def forward(self, boxes, scores):
        order = torch.argsort(scores, descending=True, stable=True)
        b = boxes[order]
        area = (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
        size = torch.minimum(b[:, None, 2:], b[None, :, 2:]) - torch.maximum(b[:, None, :2], b[None, :, :2])
        common = size.clamp(min=0).prod(2)
        near = (common > self.overlap * (area[:, None] + area[None] - common)).triu(1)
        keep = torch.ones(len(b), dtype=torch.bool)
        for i in range(len(b)):
            keep &= ~(near[i] & keep[i])
        return torch.empty_like(keep).index_put_((order,), keep)


def get_inputs():
    corner, size = torch.rand(192, 2) * 10000, torch.rand(192, 2) * 80 + 20
    one = torch.cat([corner, corner + size], 1)
    other = one + (torch.rand(192, 4) - 0.5) * 0.08 * size.repeat(1, 2)
    return [torch.cat([one, other]), torch.rand(384)]


def get_init_inputs():
    return [0.5]
