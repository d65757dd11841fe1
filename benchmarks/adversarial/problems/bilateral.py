"""
op_type: stencil
policy: anything-faster
about: A bilateral filter of grey images with windows of five by five pixels.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, image):
        height, width = image.shape[-2:]
        padded = F.pad(image[:, None], (2, 2, 2, 2), mode="reflect")[:, 0]
        total, weights = torch.zeros_like(image), torch.zeros_like(image)
        for dy in range(5):
            for dx in range(5):
                other = padded[:, dy : dy + height, dx : dx + width]
                near = ((dy - 2) ** 2 + (dx - 2) ** 2) / 4.5
                weight = torch.exp(-near - (other - image) ** 2 / 0.5)
                total = total + weight * other
                weights = weights + weight
        return total / weights


def get_inputs():
    return [torch.rand(4, 160, 160)]


def get_init_inputs():
    return []
