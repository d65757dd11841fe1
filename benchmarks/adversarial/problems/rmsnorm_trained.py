"""
op_type: norm
policy: anything-faster
about: RMSNorm as in Llama, written out, and its gradients.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
