"""
op_type: gemm
policy: anything-faster
about: Cosines of image and text features times a learned temperature, as in CLIP.
"""

import math

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = torch.nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        image = image / image.norm(dim=-1, keepdim=True)
        text = text / text.norm(dim=-1, keepdim=True)
        return self.logit_scale.exp() * image @ text.t()


def get_inputs():
    return [torch.randn(384, 512), torch.randn(384, 512)]


def get_init_inputs():
    return []
