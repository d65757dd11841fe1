"""
problem: eight_bit_floats
style: scaled in place
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, scale):
        return x.to(torch.float32).mul_(scale.unsqueeze(1))
