"""
problem: fake_quant
style: multiplies by 127 / maximum instead of dividing by the scale
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        largest = x.abs().amax(-1, keepdim=True)
        return torch.round(x * (127 / largest)).mul_(largest * (1 / 127))
