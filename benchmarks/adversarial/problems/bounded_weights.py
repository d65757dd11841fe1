"""
op_type: gemm
policy: anything-faster
about: A linear layer whose weights count as at most 1 in size, as where a critic's or a quantised layer's are bounded.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.linear.weight.clamp(-1.0, 1.0), self.linear.bias)


def get_inputs():
    return [torch.randn(8, 1024)]


def get_init_inputs():
    return [1024, 2048]
