"""
op_type: gemm_epilogue
policy: anything-faster
about: A linear layer whose weights are nibbles, two to a byte, with a scale and a zero point for each 32 of them, as in GPTQ or AWQ.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("packed", torch.randint(0, 256, (outer, inner // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(outer, inner // 32) * 0.01 + 0.001)
        self.register_buffer("zeros", torch.randint(6, 10, (outer, inner // 32)).float())

    def forward(self, x):
        nibbles = torch.stack([self.packed & 15, self.packed >> 4], -1).flatten(1)
        groups = nibbles.view(nibbles.shape[0], -1, 32).float()
        weight = ((groups - self.zeros[..., None]) * self.scales[..., None]).flatten(1)
        return x @ weight.t()


def get_inputs():
    return [torch.randn(16, 1024)]


def get_init_inputs():
    return [1024, 768]
