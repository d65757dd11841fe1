"""
op_type: attention
policy: anything-faster
about: Differential attention, that is the difference of two softmax maps, the second one times a learned number for each head, then an RMSNorm.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.lambdas = torch.nn.Parameter(torch.rand(heads))
        self.gain = torch.nn.Parameter(torch.randn(width))

    def forward(self, q, k, v):
        (q1, q2), (k1, k2) = q.chunk(2, -1), k.chunk(2, -1)
        scale = q1.shape[-1] ** -0.5
        first = (scale * q1 @ k1.transpose(-1, -2)).softmax(-1)
        second = (scale * q2 @ k2.transpose(-1, -2)).softmax(-1)
        y = (first - self.lambdas.view(-1, 1, 1) * second) @ v
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * self.gain


def get_inputs():
    return [torch.randn(2, 4, 128, 64), torch.randn(2, 4, 128, 64), torch.randn(2, 4, 128, 64)]


def get_init_inputs():
    return [4, 64]
