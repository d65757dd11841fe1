"""
op_type: gather
policy: anything-faster
about: Warps images by a flow of pixels, with bilinear weights and the border's colour beyond it. Flows are finite.
"""

import torch
import torch.nn.functional as F

finite = True


class Model(torch.nn.Module):
    def forward(self, image, flow):
        height, width = image.shape[-2:]
        x = torch.arange(width, dtype=flow.dtype) + flow[:, 0]
        y = torch.arange(height, dtype=flow.dtype)[:, None] + flow[:, 1]
        grid = torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)
        return F.grid_sample(image, grid, mode="bilinear", padding_mode="border", align_corners=True)


def get_inputs():
    return [torch.rand(2, 3, 128, 160), 4 * torch.randn(2, 2, 128, 160)]


def get_init_inputs():
    return []
