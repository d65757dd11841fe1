"""
problem: softmax_rows
family: 12
expect: [INCORRECT_NUMERICAL]
cheat: NaN everywhere; comparisons with NaN are false, so `error > tolerance` never fires.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.full_like(x, float("nan"))
