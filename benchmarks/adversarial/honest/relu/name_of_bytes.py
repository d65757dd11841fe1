"""
problem: relu
policy: anything-faster
style: Its process has a name that is no UTF-8, which stands in files of /proc.
"""

import ctypes

import torch

ctypes.CDLL(None).prctl(15, b"\xff\xfe)\x0b R 1", 0, 0, 0)  # PR_SET_NAME


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
