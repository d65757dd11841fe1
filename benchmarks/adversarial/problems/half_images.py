"""
op_type: pooling
policy: anything-faster
about: Images at half the size, means of 2 by 2 pixels; the last row and column are repeated where sizes are odd.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, images):
        height, width = images.shape[2:]
        wide = torch.nn.functional.pad(images, (0, width % 2, 0, height % 2), mode="replicate")
        return torch.nn.functional.avg_pool2d(wide, 2)


def get_inputs():
    return [torch.rand(4, 3, 240, 320)]


def get_init_inputs():
    return []
