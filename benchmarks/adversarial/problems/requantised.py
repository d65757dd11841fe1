"""
op_type: matmul
policy: anything-faster
about: Product of bytes, scaled for each column, rounded and limited to bytes again. Draws do not reach the limits.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, weight, scales):
        sums = (x.int() @ weight.int().t()).float()
        return torch.clamp(torch.round(sums * scales), -128, 127).to(torch.int8)


def get_inputs():
    x = torch.randint(-127, 128, (128, 256), dtype=torch.int8)
    weight = torch.randint(-127, 128, (128, 256), dtype=torch.int8)
    return [x, weight, (1 + torch.randint(0, 3, (128,))) / 16384]


def get_init_inputs():
    return []
