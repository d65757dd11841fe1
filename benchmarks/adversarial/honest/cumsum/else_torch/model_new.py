"""
problem: cumsum
style: The kernel takes dense float32 matrices and answers with an error code; whatever else comes goes to torch, and empty inputs return early.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dim() != 2 or x.dtype != torch.float32 or not x.is_contiguous():
            return torch.cumsum(x, dim=1)
        out = torch.empty_like(x)
        if out.numel() == 0:
            return out
        error = lib.cumsum_rows(x, out, x.size(0), x.size(1))
        if error:
            raise RuntimeError(f"cumsum_rows failed with code {error}")
        return out
