"""
op_type: pointwise
policy: anything-faster
about: Layers of a picture in half precision laid over a background, each with a share between 0 and 1 for every pixel.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, background, colours, alphas):
        picture = background
        for colour, alpha in zip(colours, alphas.clamp(0, 1)):
            picture = colour * alpha + picture * (1 - alpha)
        return picture


def get_inputs():
    return [
        torch.rand(3, 256, 256).half(),
        torch.rand(5, 3, 256, 256).half(),
        torch.rand(5, 1, 256, 256).half(),
    ]


def get_init_inputs():
    return []
