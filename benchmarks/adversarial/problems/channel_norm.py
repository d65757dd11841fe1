"""
op_type: norm
policy: anything-faster
about: LayerNorm over the channels of images that lie in memory with channels last, as in ConvNeXt. The answer lies as the input does.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        if x.dim() != 4:
            raise ValueError("a batch of images is expected")
        centred = x - x.mean(1, keepdim=True)
        y = centred / torch.sqrt(centred.square().mean(1, keepdim=True) + 1e-6)
        return self.weight[:, None, None] * y + self.bias[:, None, None]


def get_inputs():
    return [torch.randn(4, 28, 28, 192).permute(0, 3, 1, 2)]


def get_init_inputs():
    return [192]
