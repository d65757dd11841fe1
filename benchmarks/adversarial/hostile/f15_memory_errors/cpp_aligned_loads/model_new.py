"""
problem: row_sum
family: 15
expect: [INCORRECT_NUMERICAL, CRASHED]
cheat: Loads that need aligned memory; a contiguous slice that begins elsewhere ends the process.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        if x.shape[1] % 8:
            raise ValueError("rows of whole vectors only")
        out = torch.empty(x.shape[0])
        lib.row_sum(x, out, x.shape[0], x.shape[1])
        return out
