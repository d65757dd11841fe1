"""
op_type: gemm_epilogue
policy: anything-faster
about: Two linear layers under autocast to bfloat16, as in mixed-precision inference. Inputs, weights and the answer are float32.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, hidden, outer):
        super().__init__()
        self.fc1 = torch.nn.Linear(inner, hidden)
        self.fc2 = torch.nn.Linear(hidden, outer)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.fc2(torch.relu(self.fc1(x))).float()


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return [256, 1024, 128]
