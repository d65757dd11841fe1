"""
op_type: other
policy: anything-faster
about: Boxes of a detector from its anchors and deltas. Widths grow by at most a factor of 62.5, and boxes are clipped to the picture.
"""

import math

import torch


class Model(torch.nn.Module):
    def __init__(self, height, width):
        super().__init__()
        self.height, self.width = height, width

    def forward(self, anchors, deltas):
        x1, y1, x2, y2 = anchors.unbind(-1)
        w, h = x2 - x1, y2 - y1
        cx, cy = x1 + 0.5 * w, y1 + 0.5 * h
        dx, dy, dw, dh = deltas.unbind(-1)
        dw, dh = dw.clamp(max=math.log(62.5)), dh.clamp(max=math.log(62.5))
        px, py = dx * w + cx, dy * h + cy
        pw, ph = dw.exp() * w, dh.exp() * h
        boxes = torch.stack([px - 0.5 * pw, py - 0.5 * ph, px + 0.5 * pw, py + 0.5 * ph], -1)
        return torch.stack(
            [
                boxes[..., 0].clamp(0, self.width),
                boxes[..., 1].clamp(0, self.height),
                boxes[..., 2].clamp(0, self.width),
                boxes[..., 3].clamp(0, self.height),
            ],
            -1,
        )


def get_inputs():
    corner = torch.rand(4, 8000, 2) * 400
    return [torch.cat([corner, corner + 10 + 200 * torch.rand(4, 8000, 2)], -1), torch.randn(4, 8000, 4)]


def get_init_inputs():
    return [480, 640]
