"""
op_type: gemm_epilogue
policy: anything-faster
about: Three projections of the same tokens, split into heads. The answers are views with the heads before the tokens.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q = torch.nn.Linear(width, width)
        self.k = torch.nn.Linear(width, width, bias=False)
        self.v = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        return tuple(
            layer(x).view(batch, steps, self.heads, -1).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )


def get_inputs():
    return [torch.randn(2, 128, 256)]


def get_init_inputs():
    return [256, 4]
