"""
problem: maxpool_places
style: One pass that keeps the first of equals and lets NaN win.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n, c, h, w = x.shape
        out = x.new_empty(n, c, h // 2, w // 2)
        places = torch.empty(out.shape, dtype=torch.int64)
        lib.pool(x, out, places, n * c, h, w)
        return out, places
