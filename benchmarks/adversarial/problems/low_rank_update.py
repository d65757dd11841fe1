"""
op_type: gemm_epilogue
policy: anything-faster
about: A linear layer with a LoRA adapter of rank 8. Inputs are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def __init__(self, inner, outer, rank, alpha):
        super().__init__()
        self.base = torch.nn.Linear(inner, outer)
        self.lora_a = torch.nn.Linear(inner, rank, bias=False)
        self.lora_b = torch.nn.Linear(rank, outer, bias=False)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * self.lora_b(self.lora_a(x))


def get_inputs():
    return [torch.randn(4, 64, 512)]


def get_init_inputs():
    return [512, 512, 8, 16]
