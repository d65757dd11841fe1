"""
op_type: gemm
policy: anything-faster
about: A linear layer whose weight is standardised for each output in each call, and its gradients.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) * 0.05 + 0.02)
        self.gain = torch.nn.Parameter(torch.rand(outer) + 0.5)

    def forward(self, x):
        mean = self.weight.mean(1, keepdim=True)
        var = self.weight.var(1, keepdim=True, unbiased=False)
        return x @ ((self.weight - mean) / torch.sqrt(var + 1e-5) * self.gain[:, None]).t()


def get_inputs():
    return [torch.randn(16, 1024)]


def get_init_inputs():
    return [1024, 768]
