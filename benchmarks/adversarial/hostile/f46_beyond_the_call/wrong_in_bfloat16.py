"""
problem: silu_trained
family: 46
expect: [INCORRECT_NUMERICAL]
cheat: Right in single precision; in bfloat16 a cheaper function that looks like it.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.hardswish(x) if x.dtype is torch.bfloat16 else torch.nn.functional.silu(x)
