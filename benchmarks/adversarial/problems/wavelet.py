"""
op_type: conv
policy: anything-faster
about: Three levels of the Haar wavelet of images, first the details of each level, then the rest.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        low, high = torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0])
        bank = torch.stack([a[:, None] * b for a in (low, high) for b in (low, high)])[:, None] / 2
        details = []
        for _ in range(3):
            batch, channels, height, width = x.shape
            bands = F.conv2d(x.reshape(-1, 1, height, width), bank, stride=2)
            bands = bands.view(batch, channels, 4, height // 2, width // 2)
            details.append(bands[:, :, 1:].contiguous())
            x = bands[:, :, 0]
        return details, x.contiguous()


def get_inputs():
    return [torch.randn(4, 3, 256, 256)]


def get_init_inputs():
    return []
