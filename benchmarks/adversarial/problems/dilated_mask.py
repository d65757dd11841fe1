"""
op_type: stencil
policy: anything-faster
about: Opening of bool masks, that is an erosion and a dilation by a cross of five pixels, twice. What lies outside is false.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, masks):
        cross = torch.tensor([[[[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]]])
        m = masks[:, None].float()
        for _ in range(2):
            m = (F.conv2d(m, cross, padding=1) > 4.5).float()
        for _ in range(2):
            m = (F.conv2d(m, cross, padding=1) > 0.5).float()
        return m[:, 0] > 0.5


def get_inputs():
    return [torch.rand(8, 160, 160) < 0.95]


def get_init_inputs():
    return []
