"""
problem: l2_norm
family: 7
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Errors of 1e-3, a tenth of the result, yet below an absolute 1e-2.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x / x.norm(dim=1, keepdim=True)
        return y + 1e-3 * torch.sign(x - 0.5)
