"""
op_type: pointwise
policy: anything-faster
about: Scales and shifts an image of bytes, and puts the channels first.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, image):
        mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        return ((image.float() / 255 - mean) / deviation).permute(0, 3, 1, 2).contiguous()


def get_inputs():
    return [torch.randint(0, 256, (4, 96, 96, 3), dtype=torch.uint8)]


def get_init_inputs():
    return []
