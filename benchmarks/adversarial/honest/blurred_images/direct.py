"""
problem: blurred_images
style: The convolution itself, with the border carried round the torus, and no transform.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.spot = torch.nn.Parameter(torch.rand(5, 5) / 12)

    def forward(self, x):
        if x.dim() != 3 or min(x.shape[-2:]) < 5:
            raise ValueError("images of at least 5 by 5 pixels are expected")
        padded = F.pad(x[:, None], (4, 0, 4, 0), mode="circular")
        return F.conv2d(padded, self.spot.flip(0, 1)[None, None]).squeeze(1)
