"""
problem: relu
family: 9
expect: [INCORRECT_DTYPE]
policy: anything-faster
cheat: Returns float16, half of the bytes.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x.half())
