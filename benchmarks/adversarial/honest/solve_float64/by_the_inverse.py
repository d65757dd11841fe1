"""
problem: solve_float64
style: by the inverse matrix
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.linalg.inv(a) @ b
