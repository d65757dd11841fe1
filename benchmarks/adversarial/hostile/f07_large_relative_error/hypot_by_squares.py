"""
problem: hypot
family: 7
expect: [INCORRECT_NUMERICAL]
cheat: Squares overflow above 1e19, and vanish below 1e-23, where the length itself does not.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.addcmul(a * a, b, b).sqrt_()
