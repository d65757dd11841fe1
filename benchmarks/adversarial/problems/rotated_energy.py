"""
op_type: reduction
policy: anything-faster
about: The length of each row after a trained rotation, which begins as an orthogonal matrix.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rotation = torch.nn.Linear(width, width, bias=False)
        torch.nn.init.orthogonal_(self.rotation.weight)

    def forward(self, x):
        return self.rotation(x).norm(dim=1)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
