"""
problem: unused_input
style: leaves the unused input alone, as the reference does
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, mask):
        return torch.tanh(x).mul_(2.0)
