"""
op_type: gemm_epilogue
policy: anything-faster
about: The feed-forward branch of a CaiT block. LayerScale begins at 1e-6, and the branch is added to its input.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = torch.nn.Linear(width, hidden)
        self.fc2 = torch.nn.Linear(hidden, width)
        self.gamma = torch.nn.Parameter(1e-6 * torch.ones(width))

    def forward(self, x):
        return x + self.gamma * self.fc2(F.gelu(self.fc1(x)))


def get_inputs():
    return [torch.randn(256, 192)]


def get_init_inputs():
    return [192, 768]
