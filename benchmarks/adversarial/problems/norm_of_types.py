"""
op_type: norm
policy: anything-faster
about: LayerNorm written out, computed in single precision at least, for 16-bit inputs too.
"""

import torch

dtypes = ("float16", "bfloat16")


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return (centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias).to(x.dtype)


def get_inputs():
    return [torch.randn(2048, 512)]


def get_init_inputs():
    return [512]
